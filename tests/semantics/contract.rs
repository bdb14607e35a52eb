//! SPEC §1: the wire contract. Names, numbers and types stay what they are; new fields get new numbers.

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

const CALLS: &str = "
Broker.Publish: PublishRequest -> PublishResponse
Broker.PublishStream: stream PublishRequest -> stream PublishConfirm
Broker.PublishBatch: PublishBatchRequest -> PublishBatchResponse
Broker.Subscribe: stream SubscribeCommand -> stream SubscribeEvent
Broker.Ack: AckRequest -> AckResponse
Broker.Nack: NackRequest -> NackResponse
Broker.Extend: ExtendRequest -> ExtendResponse
Admin.GetServerInfo: GetServerInfoRequest -> GetServerInfoResponse
Admin.GetStats: GetStatsRequest -> GetStatsResponse
";

const ENUMS: &str = "
DeliveryMode: 0 DELIVERY_MODE_UNSPECIFIED, 1 DELIVERY_MODE_MULTI, 2 DELIVERY_MODE_BALANCED, 3 DELIVERY_MODE_SINGLETON
OverflowPolicy: 0 OVERFLOW_POLICY_UNSPECIFIED, 1 OVERFLOW_POLICY_REJECT, 2 OVERFLOW_POLICY_DROP_OLDEST, 3 OVERFLOW_POLICY_DROP_NEWEST, 4 OVERFLOW_POLICY_DISCONNECT
Role: 0 ROLE_UNSPECIFIED, 1 ROLE_ACTIVE, 2 ROLE_STANDBY
";

const MESSAGES: &str = "
Message: 1 system_id string, 2 message_id string, 3 topic string, 4 payload bytes, 5 headers map, 6 published_at Timestamp, 7 delivery_attempt uint32, 8 epoch uint64
PublishRequest: 1 topic string, 2 payload bytes, 3 message_id string, 4 headers map
PublishResponse: 1 system_id string, 2 message_id string, 3 subscriptions uint32
PublishConfirm: 1 confirmed uint64, 2 failures repeated PublishFailure, 3 unheard uint64
PublishFailure: 1 index uint64, 2 code int32, 3 message string
PublishBatchRequest: 1 messages repeated PublishRequest
PublishBatchResponse: 1 results repeated PublishResponse, 2 failures repeated PublishFailure
SubscribeCommand: 1 open OpenSubscription of command, 2 ack Ack of command, 3 nack Nack of command, 4 extend Extend of command, 5 resign Resign of command
OpenSubscription: 1 subscription_id string, 2 topic_patterns repeated string, 3 mode DeliveryMode, 4 consumer_group string, 5 max_in_flight uint32, 6 max_batch uint32, 7 ack_timeout Duration, 8 max_deliveries uint32, 9 dead_letter_topic string, 10 linger Duration, 11 max_pending uint64, 12 overflow OverflowPolicy, 13 control_events bool
Ack: 1 subscription_id string, 2 system_id string, 3 message_id string, 4 system_ids repeated string
Nack: 1 subscription_id string, 2 system_id string, 3 message_id string, 4 system_ids repeated string, 5 delay Duration, 6 discard bool, 7 keep_attempt bool
Extend: 1 subscription_id string, 2 system_id string, 3 message_id string, 4 system_ids repeated string, 5 ack_timeout Duration
Resign: none
AckRequest: 1 subscription_id string, 2 system_id string, 3 message_id string, 4 system_ids repeated string
AckResponse: 1 settled uint32
NackRequest: 1 subscription_id string, 2 system_id string, 3 message_id string, 4 system_ids repeated string, 5 delay Duration, 6 discard bool, 7 keep_attempt bool
NackResponse: 1 settled uint32
ExtendRequest: 1 subscription_id string, 2 system_id string, 3 message_id string, 4 system_ids repeated string, 5 ack_timeout Duration
ExtendResponse: 1 settled uint32
SubscribeEvent: 1 subscription_id string of event, 2 message Message of event, 3 batch MessageBatch of event, 4 lagged Lagged of event, 5 role RoleChanged of event, 6 draining Draining of event
MessageBatch: 1 messages repeated Message
Lagged: 1 dropped uint64
RoleChanged: 1 role Role, 2 epoch uint64, 3 position uint32
Draining: 1 grace Duration
";

fn files() -> Vec<FileDescriptorProto> {
    let set = FileDescriptorSet::decode(tinybroker::proto::DESCRIPTORS).expect("descriptors");
    set.file.into_iter().filter(|file| file.package() == "tinybroker.v1").collect()
}

/// A full name without its package.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn field(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let is_map = message.nested_type.iter().any(|nested| {
        nested.name() == short(field.type_name()) && nested.options.as_ref().is_some_and(|it| it.map_entry())
    });
    let kind = match field.r#type() {
        _ if is_map => "map",
        Type::String => "string",
        Type::Bytes => "bytes",
        Type::Uint32 => "uint32",
        Type::Uint64 => "uint64",
        Type::Int32 => "int32",
        Type::Bool => "bool",
        Type::Message | Type::Enum => short(field.type_name()),
        other => panic!("{other:?} is not used"),
    };
    let repeated = if field.label() == Label::Repeated && !is_map { "repeated " } else { "" };
    let oneof = field.oneof_index.map(|index| format!(" of {}", message.oneof_decl[index as usize].name()));
    format!("{} {} {repeated}{kind}{}", field.number(), field.name(), oneof.unwrap_or_default())
}

/// The lines are all there, and nothing else is; in whatever order.
fn assert_same(expected: &str, mut found: Vec<String>) {
    let mut expected: Vec<&str> = expected.trim().lines().collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn calls_are_those_of_the_contract() {
    let mut calls = Vec::new();
    for service in files().iter().flat_map(|file| &file.service) {
        for method in &service.method {
            let side = |streams, name| format!("{}{}", if streams { "stream " } else { "" }, short(name));
            let request = side(method.client_streaming(), method.input_type());
            let response = side(method.server_streaming(), method.output_type());
            calls.push(format!("{}.{}: {request} -> {response}", service.name(), method.name()));
        }
    }
    assert_same(CALLS, calls);
}

#[test]
fn enums_have_the_numbers_of_the_contract() {
    let mut enums = Vec::new();
    for one in files().iter().flat_map(|file| &file.enum_type) {
        let values: Vec<_> = one.value.iter().map(|it| format!("{} {}", it.number(), it.name())).collect();
        enums.push(format!("{}: {}", one.name(), values.join(", ")));
    }
    assert_same(ENUMS, enums);
}

#[test]
fn messages_have_the_fields_of_the_contract() {
    let mut messages = Vec::new();
    let files = files();
    let of_broker = files.iter().filter(|file| !file.name().ends_with("admin.proto"));
    for message in of_broker.flat_map(|file| &file.message_type) {
        let fields: Vec<_> = message.field.iter().map(|it| field(message, it)).collect();
        let fields = if fields.is_empty() { "none".into() } else { fields.join(", ") };
        messages.push(format!("{}: {fields}", message.name()));
    }
    assert_same(MESSAGES, messages);
}
