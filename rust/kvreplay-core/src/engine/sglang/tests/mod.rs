//! Tests of the SGLang models.

mod golden;
