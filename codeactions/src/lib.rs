//! Rewrites of device-side kernel launches.
