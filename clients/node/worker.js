// A worker that stays subscribed: handles, acks, and comes back when the broker was away.
//
//     node worker.js --mode balanced --group resizers 'jobs.thumb.*'
//
// Prints one JSON object a line for each thing that happens.
'use strict';

const { setTimeout: sleep } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { status } = require('@grpc/grpc-js');
const { connect, call } = require('./broker');

const LONGEST_BACKOFF_MS = 2_000;

// Trying again does not help here: the program or its options are wrong.
const FATAL = new Set([
  status.INVALID_ARGUMENT,
  status.FAILED_PRECONDITION,
  status.ALREADY_EXISTS,
  status.UNIMPLEMENTED,
]);

const report = (event, details) => console.log(JSON.stringify({ event, ...details }));

// Your work goes here; this only takes its time.
async function handle(message, seconds) {
  const { topic, system_id, message_id, delivery_attempt, epoch, headers, payload } = message;
  report('message', {
    topic,
    system_id,
    message_id,
    attempt: delivery_attempt,
    epoch,
    headers,
    payload: payload.toString(),
  });
  await sleep(seconds * 1000);
}

class Worker {
  failures = 0;
  busy = false;
  stopping = false;

  constructor(client, options) {
    this.client = client;
    this.options = options;
  }

  // Leaves when the message in hand is done; what was not acked goes to another worker.
  stop() {
    this.stopping = true;
    if (!this.busy) process.exit(0);
  }

  async run() {
    while (!this.stopping) {
      try {
        await this.subscribe();
      } catch (error) {
        // A status of a call, or else a fault in this program.
        if (status[error.code] === undefined || FATAL.has(error.code)) throw error;
        report('lost', { code: status[error.code], details: error.details });
      }
      if (!this.stopping) await this.backOff();
    }
  }

  // One stream, from its opening to its end.
  async subscribe() {
    const stream = this.client.Subscribe();
    stream.write({ open: this.opening() });
    try {
      for await (const event of stream) {
        this.busy = true;
        await this.react(event, stream);
        this.busy = false;
        if (this.stopping) return;
      }
    } finally {
      this.busy = false;
      stream.cancel();
    }
  }

  opening() {
    const { mode, group, patterns, maxInFlight } = this.options;
    return {
      topic_patterns: patterns,
      mode: `DELIVERY_MODE_${mode.toUpperCase()}`,
      consumer_group: group,
      max_in_flight: maxInFlight,
    };
  }

  async react(event, stream) {
    switch (event.event) {
      case 'subscription_id':
        this.failures = 0;
        this.subscriptionId = event.subscription_id;
        report('started', { subscription_id: event.subscription_id });
        break;
      case 'message':
        await handle(event.message, this.options.work);
        await this.ack(event.message, stream);
        break;
      default: // Other events may come, and new kinds later: let them pass.
    }
  }

  async ack({ system_id }, stream) {
    if (this.options.ack === 'stream') {
      stream.write({ ack: { system_id } });
    } else if (this.options.ack === 'unary') {
      await call(this.client, 'Ack', { subscription_id: this.subscriptionId, system_id }).catch((error) => {
        // NOT_FOUND: the broker took the message back meanwhile, and another worker does it again.
        if (error.code !== status.NOT_FOUND) throw error;
      });
    }
  }

  // Waits longer each time, and each worker differently, so that they do not come back all at once.
  async backOff() {
    const longest = Math.min(LONGEST_BACKOFF_MS, 200 * 2 ** this.failures);
    this.failures += 1;
    await sleep(100 + Math.random() * (longest - 100));
  }
}

function parseOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      broker: { type: 'string', default: process.env.TINYBROKER_BROKER ?? '127.0.0.1:50051' },
      mode: { type: 'string', default: 'multi' }, // multi, balanced or singleton
      group: { type: 'string', default: '' }, // needed in balanced and singleton
      ack: { type: 'string', default: 'unary' }, // unary, stream or none
      'max-in-flight': { type: 'string', default: '0' }, // un-acked messages at once
      work: { type: 'string', default: '0' }, // seconds that a message takes
    },
  });
  return { ...values, maxInFlight: Number(values['max-in-flight']), patterns: positionals };
}

async function main() {
  const options = parseOptions();
  const client = connect(options.broker);
  const worker = new Worker(client, options);
  process.on('SIGTERM', () => worker.stop());
  await worker.run();
  client.close();
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
