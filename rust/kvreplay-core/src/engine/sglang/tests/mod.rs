//! Tests of the SGLang models.
