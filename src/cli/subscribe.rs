use super::CommandResult;
use crate::config::SubOptions;

pub fn subscribe(_: SubOptions) -> CommandResult {
    Err("not yet".into())
}
