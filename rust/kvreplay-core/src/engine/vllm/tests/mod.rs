//! Tests of the vLLM model.

use crate::engine::tests::golden;

#[test]
fn golden_vectors_of_the_gpu() {
    golden::check("vllm", |entry| entry["config"]["tiers"] == "gpu");
}

#[test]
fn the_conversation_trace_on_the_gpu() {
    for run in golden::external("vllm", |entry| entry["config"]["tiers"] == "gpu") {
        run.check();
    }
}
