//! Slow, obvious twins of the engines, used by tests only.
