//! Tiers, fill rules and the cascade of `semantics.md` section 5.
