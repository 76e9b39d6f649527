//! Hand-worked traces, and the models against their slow twins.

mod by_hand;
mod differential;
