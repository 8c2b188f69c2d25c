//! Incremental database and analyses of CUDA dynamic parallelism.
