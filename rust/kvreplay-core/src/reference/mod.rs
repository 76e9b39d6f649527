//! Slow, obvious twins of the engines, used by tests only.

#[cfg(test)]
mod policies;
