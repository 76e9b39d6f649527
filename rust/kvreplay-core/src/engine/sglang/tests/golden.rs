//! The vectors that SGLang's own tree produced.

use crate::engine::tests::golden::{check, external};

#[test]
fn every_vector_is_met() {
    check("sglang", |_| true);
}

#[test]
fn the_conversation_trace_is_met() {
    // Hits over all listed blocks can exceed the prompt there; kvreplay never counts more than the prompt.
    for run in external("sglang", |entry| entry["config"]["paths"] == "full") {
        run.check();
    }
}
