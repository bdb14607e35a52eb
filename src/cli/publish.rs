use super::CommandResult;
use crate::config::PubOptions;

pub fn publish(_: PubOptions) -> CommandResult {
    Err("not yet".into())
}
