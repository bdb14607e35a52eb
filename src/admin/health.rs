use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

/// The service that clients of the broker ask for, beside the process as a whole.
pub(super) const BROKER: &str = "tinybroker.v1.Broker";

/// The state of `grpc.health.v1` for the whole process: held by the control thread.
pub struct HealthSwitch {
    reporter: HealthReporter,
}

impl HealthSwitch {
    /// SERVING, for the process and for the broker.
    pub fn new() -> Self {
        let switch = HealthSwitch { reporter: HealthReporter::new() };
        switch.set(ServingStatus::Serving);
        switch
    }

    /// The server, to be cloned for each connection.
    pub fn server(&self) -> HealthServer<HealthService> {
        HealthServer::new(HealthService::from_health_reporter(self.reporter.clone()))
    }

    /// Tells everybody that no new work is taken. Blocks for as long as another executor reads.
    pub fn not_serving(&self) {
        self.set(ServingStatus::NotServing);
    }

    fn set(&self, status: ServingStatus) {
        for name in ["", BROKER] {
            pollster::block_on(self.reporter.set_service_status(name, status));
        }
    }
}

impl Default for HealthSwitch {
    fn default() -> Self {
        Self::new()
    }
}
