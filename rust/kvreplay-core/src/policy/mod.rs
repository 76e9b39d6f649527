//! Eviction policies: one file each behind one registry.
