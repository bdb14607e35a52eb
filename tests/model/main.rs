//! The core as a pure state machine: against a naive twin in random worlds, and in told stories.

mod outcome;
mod random;
mod script;
mod stage;
mod stories;
mod twin;
mod world;
