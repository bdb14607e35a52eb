//! The programs of `clients/`, as users run them, against the built binary.
//!
//! The same stories for each language: only what the language's own gRPC library makes of the wire
//! contract differs. Needs python3, node and npm, and their package registries on the first run.

mod language;
mod seed;
mod stories;
#[path = "../support/mod.rs"]
mod support;
mod toolchain;

macro_rules! in_each_language {
    ($($story:ident)*) => {
        in_language!(python, Python, $($story)*);
        in_language!(node, Node, $($story)*);
        in_language!(rust, Rust, $($story)*);
    };
}

macro_rules! in_language {
    ($module:ident, $language:ident, $($story:ident)*) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $story() {
                    crate::stories::$story(crate::language::Language::$language).await;
                }
            )*
        }
    };
}

in_each_language! {
    an_ack_by_the_unary_call_brings_the_next
    an_ack_in_the_stream_brings_the_next
    work_is_shared_and_none_is_done_twice
    work_of_a_killed_worker_goes_to_the_other
    a_standby_takes_over_where_the_killed_leader_was
    every_multi_worker_gets_everything
    message_id_and_headers_arrive
    workers_come_back_after_a_restart
    sigterm_gives_back_what_is_not_acked
    sigterm_lets_the_message_in_hand_be_finished
    a_mistake_is_told_and_not_tried_again
}
