//! The programs of `clients/`, as users run them, against the built binary.
//!
//! The same stories for each language: only what the language's own gRPC library makes of the wire
//! contract differs. Needs python3, node and npm, and their package registries on the first run.

mod language;
mod publishing;
mod seed;
mod settling;
mod stories;
#[path = "../support/mod.rs"]
mod support;
mod toolchain;

macro_rules! in_each_language {
    ($($group:ident::$story:ident)*) => {
        in_language!(python, Python, $($group::$story)*);
        in_language!(node, Node, $($group::$story)*);
        in_language!(rust, Rust, $($group::$story)*);
    };
}

macro_rules! in_language {
    ($module:ident, $language:ident, $($group:ident::$story:ident)*) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $story() {
                    crate::$group::$story(crate::language::Language::$language).await;
                }
            )*
        }
    };
}

in_each_language! {
    stories::an_ack_by_the_unary_call_brings_the_next
    stories::an_ack_in_the_stream_brings_the_next
    stories::work_is_shared_and_none_is_done_twice
    stories::work_of_a_killed_worker_goes_to_the_other
    stories::a_standby_takes_over_where_the_killed_leader_was
    stories::every_multi_worker_gets_everything
    stories::message_id_and_headers_arrive
    stories::workers_come_back_after_a_restart
    stories::sigterm_gives_back_what_is_not_acked
    stories::sigterm_lets_the_message_in_hand_be_finished
    stories::a_mistake_is_told_and_not_tried_again
    settling::a_nack_with_a_delay_lets_others_go_first
    settling::a_nack_with_keep_attempt_is_no_attempt
    settling::what_fails_every_time_becomes_a_dead_letter
    settling::what_is_discarded_becomes_a_dead_letter
    settling::what_is_held_too_long_goes_to_another
    settling::a_batch_is_handled_and_acked
    publishing::a_stream_is_confirmed
    publishing::a_batch_is_answered_one_by_one
    publishing::a_full_group_refuses
}
