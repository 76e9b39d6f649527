//! The stack engine: exact LRU results for every capacity in one pass over owner runs.
