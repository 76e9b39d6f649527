//! LMCache against its own policy classes' numbers, by hand, and against slow twins.

use crate::engine::tests::golden;

#[test]
fn golden_vectors() {
    golden::check("lmcache", |_| true);
    golden::check("vllm+lmcache", |_| true);
}
