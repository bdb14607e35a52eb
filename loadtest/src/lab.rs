//! What a scenario is given to work with.

use std::sync::Arc;

use crate::broker::{Broker, Target};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::load::LoadOptions;
use crate::measured::Measured;
use crate::progress::Progress;
use crate::trial::Trial;

pub struct Lab {
    pub target: Target,
    pub load: LoadOptions,
    pub progress: Arc<Progress>,
}

impl Lab {
    /// The broker for one run: a new one where brokers are started here.
    pub async fn broker(&self) -> Result<Broker, Failure> {
        Broker::new(&self.target).await
    }

    pub fn crew(&self) -> Crew {
        Crew::new(usize::from(self.load.threads))
    }

    pub fn payload(&self) -> usize {
        self.load.payload as usize
    }

    /// Runs a crew against a broker that is ended afterwards, if it was started here.
    pub async fn conduct(&self, trial: &Arc<Trial>, crew: Crew, broker: Broker) -> Result<Measured, Failure> {
        let measured = trial.conduct(crew, &broker, self.load.timing(), &self.progress).await?;
        broker.end().await?;
        Ok(measured)
    }
}
