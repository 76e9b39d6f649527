//! Tests of the vLLM model.

use crate::engine::tests::golden;

#[test]
fn golden_vectors_of_the_gpu() {
    golden::check("vllm", |entry| entry["config"]["tiers"] == "gpu");
}

#[test]
fn golden_vectors_of_the_cpu_tier() {
    golden::check("vllm", |entry| entry["config"]["tiers"] != "gpu");
}

#[test]
fn the_conversation_trace() {
    for run in golden::external("vllm", |_| true) {
        run.check();
    }
}
