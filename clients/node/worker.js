// A worker that stays subscribed: handles, acks or nacks, and comes back when the broker was away.
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

// Zero is the same as unset.
const duration = (seconds) => ({
  seconds: Math.floor(seconds),
  nanos: Math.round((seconds % 1) * 1e9),
});

// Your work goes here; this only takes its time, and tells whether it was done.
async function handle(message, { work, fails }) {
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
  await sleep(work * 1000);
  return payload.toString() !== fails;
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
    const { mode, group, patterns } = this.options;
    return {
      topic_patterns: patterns,
      mode: `DELIVERY_MODE_${mode.toUpperCase()}`,
      consumer_group: group,
      max_in_flight: Number(this.options['max-in-flight']),
      max_batch: Number(this.options['max-batch']),
      ack_timeout: duration(this.options['ack-timeout']),
      max_deliveries: Number(this.options['max-deliveries']),
      dead_letter_topic: this.options['dead-letter-topic'],
      max_pending: Number(this.options['max-pending']),
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
        await this.workOff([event.message], stream);
        break;
      case 'batch':
        report('batch', { size: event.batch.messages.length });
        await this.workOff(event.batch.messages, stream);
        break;
      default: // Other events may come, and new kinds later: let them pass.
    }
  }

  // Each message is a delivery of its own, but one ack may settle them all.
  async workOff(messages, stream) {
    const done = [];
    const failed = [];
    for (const message of messages) {
      const outcome = (await handle(message, this.options)) ? done : failed;
      outcome.push(message.system_id);
    }
    if (done.length > 0) await this.settle('ack', { system_ids: done }, stream);
    if (failed.length > 0) {
      const nack = {
        system_ids: failed,
        delay: duration(this.options['nack-delay']),
        discard: this.options.discard,
        keep_attempt: this.options['keep-attempt'],
      };
      await this.settle('nack', nack, stream);
    }
  }

  async settle(verb, what, stream) {
    if (this.options.ack === 'stream') {
      stream.write({ [verb]: what });
    } else if (this.options.ack === 'unary') {
      const method = { ack: 'Ack', nack: 'Nack' }[verb];
      await call(this.client, method, { subscription_id: this.subscriptionId, ...what }).catch((error) => {
        // NOT_FOUND: the broker took them back meanwhile, and another worker does them again.
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
      ack: { type: 'string', default: 'unary' }, // and nack: unary, stream or none
      'max-in-flight': { type: 'string', default: '0' }, // un-acked messages at once
      'max-batch': { type: 'string', default: '0' }, // messages in an event
      'ack-timeout': { type: 'string', default: '0' }, // seconds that a message may be held
      'max-deliveries': { type: 'string', default: '0' }, // attempts before it is given up
      'dead-letter-topic': { type: 'string', default: '' }, // where it goes then, or when discarded
      'max-pending': { type: 'string', default: '0' }, // messages that may wait
      work: { type: 'string', default: '0' }, // seconds that a message takes
      fails: { type: 'string' }, // a payload that cannot be handled, and is nacked
      'nack-delay': { type: 'string', default: '0' }, // seconds until it may come again
      discard: { type: 'boolean', default: false }, // nack: it shall never come again
      'keep-attempt': { type: 'boolean', default: false }, // nack: it counts as not tried
    },
  });
  return { ...values, patterns: positionals };
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
