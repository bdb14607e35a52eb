"""Publishes payloads to a topic: each after the last was confirmed, or in a stream, or as a batch.

    python publisher.py jobs.thumb.1 'a.png' 'b.png' --header tenant=acme
    python publisher.py jobs.thumb.1 'a.png' 'b.png' --by stream

Prints what the broker answered, one JSON object a line.
"""

import argparse
import json
import os
import sys

import grpc
from tinybroker.v1 import client_pb2, service_pb2_grpc

# Seconds. On every call: without one a call may wait for ever.
DEADLINE = 10.0


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--broker", default=os.environ.get("TINYBROKER_BROKER", "127.0.0.1:50051"))
    parser.add_argument("--by", choices=["call", "stream", "batch"], default="call")
    parser.add_argument("--message-id", default="", help="your own id of the message")
    parser.add_argument("--header", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("topic")
    parser.add_argument("payloads", nargs="+", metavar="payload")
    return parser.parse_args()


def report(**answer):
    print(json.dumps(answer), flush=True)


def report_published(answer):
    # subscriptions is 0 where nobody was listening: then the message is gone.
    report(
        system_id=answer.system_id,
        message_id=answer.message_id,
        subscriptions=answer.subscriptions,
    )


def described(failure):
    return {"index": failure.index, "code": failure.code, "message": failure.message}


def publish_by_call(stub, requests):
    for request in requests:
        report_published(stub.Publish(request, timeout=DEADLINE))


def publish_by_stream(stub, requests):
    for confirm in stub.PublishStream(iter(requests), timeout=DEADLINE):
        # confirmed counts from the start of the stream, those that failed included.
        report(
            confirmed=confirm.confirmed,
            failures=[described(failure) for failure in confirm.failures],
            unheard=confirm.unheard,
        )


def publish_by_batch(stub, requests):
    answer = stub.PublishBatch(client_pb2.PublishBatchRequest(messages=requests), timeout=DEADLINE)
    failures = {failure.index: failure for failure in answer.failures}
    for index, result in enumerate(answer.results):
        if index in failures:
            report(**described(failures[index]))
        else:
            report_published(result)


PUBLISH = {"call": publish_by_call, "stream": publish_by_stream, "batch": publish_by_batch}


def main():
    options = parse_options()
    headers = dict(header.split("=", 1) for header in options.header)
    requests = [
        client_pb2.PublishRequest(
            topic=options.topic,
            payload=payload.encode(),
            message_id=options.message_id,
            headers=headers,
        )
        for payload in options.payloads
    ]
    with grpc.insecure_channel(options.broker) as channel:
        try:
            PUBLISH[options.by](service_pb2_grpc.BrokerStub(channel), requests)
        except grpc.RpcError as error:
            sys.exit(f"{error.code().name}: {error.details()}")


if __name__ == "__main__":
    main()
