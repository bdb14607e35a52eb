//! What operators and tools ask: the admin service, health, reflection; and the routing to all services.

#[cfg(debug_assertions)]
mod faults;
mod health;
mod info;
mod process;
mod reflection;
mod routes;

pub use health::HealthSwitch;
pub use info::{AdminService, ServerFacts};
pub use reflection::Described;
pub use routes::make_services;
