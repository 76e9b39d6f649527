//! Admission filters: one file each behind one registry.
