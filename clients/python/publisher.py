"""Publishes payloads to a topic, each after the last was confirmed.

    python publisher.py jobs.thumb.1 'a.png' 'b.png' --header tenant=acme

Prints what the broker answered, one JSON object a line.
"""

import argparse
import json
import os
import sys

import grpc
from tinybroker.v1 import client_pb2, service_pb2_grpc

DEADLINE = 10.0


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--broker", default=os.environ.get("TINYBROKER_BROKER", "127.0.0.1:50051"))
    parser.add_argument("--message-id", default="", help="your own id of the message")
    parser.add_argument("--header", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("topic")
    parser.add_argument("payloads", nargs="+", metavar="payload")
    return parser.parse_args()


def main():
    options = parse_options()
    headers = dict(header.split("=", 1) for header in options.header)
    with grpc.insecure_channel(options.broker) as channel:
        stub = service_pb2_grpc.BrokerStub(channel)
        for payload in options.payloads:
            request = client_pb2.PublishRequest(
                topic=options.topic,
                payload=payload.encode(),
                message_id=options.message_id,
                headers=headers,
            )
            try:
                # A deadline on every call: without one a call may wait for ever.
                answer = stub.Publish(request, timeout=DEADLINE)
            except grpc.RpcError as error:
                sys.exit(f"{error.code().name}: {error.details()}")
            # subscriptions is 0 where nobody was listening: then the message is gone.
            print(json.dumps({
                "system_id": answer.system_id,
                "message_id": answer.message_id,
                "subscriptions": answer.subscriptions,
            }), flush=True)


if __name__ == "__main__":
    main()
