"""A worker that stays subscribed: handles, acks or nacks, and comes back when the broker was away.

    python worker.py --mode balanced --group resizers 'jobs.thumb.*'

Prints one JSON object a line for each thing that happens.
"""

import argparse
import json
import os
import queue
import random
import signal
import sys
import time
from datetime import timedelta

import grpc
from tinybroker.v1 import client_pb2, service_pb2_grpc, shared_pb2

CHANNEL_OPTIONS = [
    # A stream may rightly be silent for hours: only pings tell a quiet broker from a dead one.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # The channel waits between its own tries to connect, by default up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]
LONGEST_BACKOFF = 2.0
SETTLE_DEADLINE = 10.0

# Trying again does not help here: the program or its options are wrong.
FATAL = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.UNIMPLEMENTED,
}


def report(event, **details):
    print(json.dumps({"event": event, **details}), flush=True)


def handle(message, options):
    """Your work goes here; this only takes its time, and tells whether it was done."""
    report(
        "message",
        topic=message.topic,
        system_id=message.system_id,
        message_id=message.message_id,
        attempt=message.delivery_attempt,
        epoch=message.epoch,
        headers=dict(message.headers),
        payload=message.payload.decode(),
    )
    time.sleep(options.work)
    return message.payload.decode() != options.fails


class Worker:
    def __init__(self, stub, options):
        self.stub = stub
        self.options = options
        self.failures = 0
        self.busy = False
        self.stopping = False

    def stop(self, *_):
        """Leaves when the message in hand is done; what was not acked goes to another worker."""
        self.stopping = True
        if not self.busy:
            raise SystemExit(0)

    def run(self):
        while not self.stopping:
            try:
                self.subscribe()
            except grpc.RpcError as error:
                if error.code() in FATAL:
                    sys.exit(f"{error.code().name}: {error.details()}")
                report("lost", code=error.code().name, details=error.details())
            if not self.stopping:
                self.back_off()

    def subscribe(self):
        """One stream, from its opening to its end."""
        commands = queue.SimpleQueue()
        commands.put(client_pb2.SubscribeCommand(open=self.opening()))
        try:
            for event in self.stub.Subscribe(iter(commands.get, None)):
                self.busy = True
                self.react(event, commands)
                self.busy = False
                if self.stopping:
                    return
        finally:
            self.busy = False
            # Ends the thread in which gRPC reads the commands.
            commands.put(None)

    def opening(self):
        return client_pb2.OpenSubscription(
            topic_patterns=self.options.patterns,
            mode=shared_pb2.DeliveryMode.Value(f"DELIVERY_MODE_{self.options.mode.upper()}"),
            consumer_group=self.options.group,
            max_in_flight=self.options.max_in_flight,
            max_batch=self.options.max_batch,
            # Zero is the same as unset, in all that follows.
            ack_timeout=timedelta(seconds=self.options.ack_timeout),
            max_deliveries=self.options.max_deliveries,
            dead_letter_topic=self.options.dead_letter_topic,
            max_pending=self.options.max_pending,
        )

    def react(self, event, commands):
        # Other events may come, and new kinds later: let them pass.
        if event.HasField("subscription_id"):
            self.failures = 0
            self.subscription_id = event.subscription_id
            report("started", subscription_id=event.subscription_id)
        elif event.HasField("message"):
            self.work_off([event.message], commands)
        elif event.HasField("batch"):
            report("batch", size=len(event.batch.messages))
            self.work_off(event.batch.messages, commands)

    def work_off(self, messages, commands):
        """Each message is a delivery of its own, but one ack may settle them all."""
        done, failed = [], []
        for message in messages:
            outcome = done if handle(message, self.options) else failed
            outcome.append(message.system_id)
        if done:
            self.settle("ack", commands, system_ids=done)
        if failed:
            self.settle(
                "nack",
                commands,
                system_ids=failed,
                delay=timedelta(seconds=self.options.nack_delay),
                discard=self.options.discard,
                keep_attempt=self.options.keep_attempt,
            )

    def settle(self, verb, commands, **what):
        if self.options.ack == "stream":
            commands.put(client_pb2.SubscribeCommand(**{verb: what}))
        elif self.options.ack == "unary":
            what["subscription_id"] = self.subscription_id
            try:
                if verb == "ack":
                    self.stub.Ack(client_pb2.AckRequest(**what), timeout=SETTLE_DEADLINE)
                else:
                    self.stub.Nack(client_pb2.NackRequest(**what), timeout=SETTLE_DEADLINE)
            except grpc.RpcError as error:
                # NOT_FOUND: the broker took them back meanwhile, and another worker does them again.
                if error.code() is not grpc.StatusCode.NOT_FOUND:
                    raise

    def back_off(self):
        """Waits longer each time, and each worker differently, so that they do not come back all at once."""
        longest = min(LONGEST_BACKOFF, 0.2 * 2 ** min(self.failures, 10))
        self.failures += 1
        time.sleep(random.uniform(0.1, longest))


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--broker", default=os.environ.get("TINYBROKER_BROKER", "127.0.0.1:50051"))
    parser.add_argument("--mode", choices=["multi", "balanced", "singleton"], default="multi")
    parser.add_argument("--group", default="", help="needed in balanced and singleton")
    parser.add_argument("--ack", choices=["unary", "stream", "none"], default="unary", help="and nack")
    parser.add_argument("--max-in-flight", type=int, default=0, help="un-acked messages at once")
    parser.add_argument("--max-batch", type=int, default=0, help="messages in an event")
    parser.add_argument("--ack-timeout", type=float, default=0, help="seconds that a message may be held")
    parser.add_argument("--max-deliveries", type=int, default=0, help="attempts before it is given up")
    parser.add_argument("--dead-letter-topic", default="", help="where it goes then, or when discarded")
    parser.add_argument("--max-pending", type=int, default=0, help="messages that may wait")
    parser.add_argument("--work", type=float, default=0, help="seconds that a message takes")
    parser.add_argument("--fails", metavar="PAYLOAD", help="a payload that cannot be handled, and is nacked")
    parser.add_argument("--nack-delay", type=float, default=0, help="seconds until it may come again")
    parser.add_argument("--discard", action="store_true", help="nack: it shall never come again")
    parser.add_argument("--keep-attempt", action="store_true", help="nack: it counts as not tried")
    parser.add_argument("patterns", nargs="+", help="globs over topics, for example 'order.*'")
    return parser.parse_args()


def main():
    options = parse_options()
    with grpc.insecure_channel(options.broker, CHANNEL_OPTIONS) as channel:
        worker = Worker(service_pb2_grpc.BrokerStub(channel), options)
        signal.signal(signal.SIGTERM, worker.stop)
        worker.run()


if __name__ == "__main__":
    main()
