"""The shortest worker there is: push notifications for payments and orders, shared by all its replicas.

It ends when the broker does. worker.py is the one that comes back.
"""

import os

import grpc
from tinybroker.v1 import service_pb2_grpc, client_pb2, shared_pb2
from tinybroker.v1.client_pb2 import AckRequest

channel = grpc.insecure_channel(os.environ.get("TINYBROKER_BROKER", "tinybroker:50051"))
stub = service_pb2_grpc.BrokerStub(channel)

def handle_notification(topic, payload):
    print(topic, payload.decode(), flush=True)

def subscribe_commands():
    yield client_pb2.SubscribeCommand(
        open=client_pb2.OpenSubscription(
            topic_patterns=["payment.*", "order.placed", "order.shipped"],
            mode=shared_pb2.DELIVERY_MODE_BALANCED,
            consumer_group="push-workers",
        )
    )

for event in stub.Subscribe(subscribe_commands()):
    if event.HasField("subscription_id"):
        subscription_id = event.subscription_id
    if event.HasField("message"):
        handle_notification(event.message.topic, event.message.payload)
        stub.Ack(AckRequest(
            subscription_id=subscription_id,
            message_id=event.message.message_id,
        ))
