//! Told stories: one promise each, by its name. Letters and numbers are those of the field cases.

mod acks;
mod balanced;
mod dead_letters;
mod fan_out;
mod lifecycle;
mod nacks;
mod overflow;
mod parked;
mod parked_limits;
mod runs;
mod singleton;
mod timeouts;
