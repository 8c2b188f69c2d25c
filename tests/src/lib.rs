//! End-to-end tests, corpus and GPU measurements of gridfuse.
