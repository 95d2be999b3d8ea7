"""Fuzz targets and their seeds; see fuzz/Cargo.toml."""
