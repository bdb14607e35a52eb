//! Told stories: one promise each, by its name. Letters and numbers are those of the field cases.

mod acks;
mod balanced;
mod lifecycle;
mod overflow;
mod singleton;
