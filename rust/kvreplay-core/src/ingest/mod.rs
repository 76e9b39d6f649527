//! Reading: from bytes to a [`crate::Trace`].
