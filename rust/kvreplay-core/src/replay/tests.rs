//! Behaviour of the replay on small hand-worked traces.
