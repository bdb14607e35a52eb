// Publishes payloads to a topic: each after the last was confirmed, or in a stream, or as a batch.
//
//     node publisher.js jobs.thumb.1 a.png b.png --header tenant=acme
//     node publisher.js jobs.thumb.1 a.png b.png --by stream
//
// Prints what the broker answered, one JSON object a line.
'use strict';

const { Readable } = require('node:stream');
const { parseArgs } = require('node:util');
const { connect, call, deadline } = require('./broker');

const report = (answer) => console.log(JSON.stringify(answer));

// subscriptions is 0 where nobody was listening: then the message is gone.
const reportPublished = ({ system_id, message_id, subscriptions }) =>
  report({ system_id, message_id, subscriptions });

const PUBLISH = {
  async call(client, requests) {
    for (const request of requests) reportPublished(await call(client, 'Publish', request));
  },

  async stream(client, requests) {
    const stream = client.PublishStream({ deadline: deadline() });
    // Sends no faster than the broker reads, while the confirms are read here.
    Readable.from(requests).pipe(stream);
    // confirmed counts from the start of the stream, those that failed included.
    for await (const { confirmed, failures, unheard } of stream) report({ confirmed, failures, unheard });
  },

  async batch(client, requests) {
    const { results, failures } = await call(client, 'PublishBatch', { messages: requests });
    const failed = new Map(failures.map((failure) => [failure.index, failure]));
    results.forEach((result, index) => {
      if (failed.has(index)) report(failed.get(index));
      else reportPublished(result);
    });
  },
};

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      broker: { type: 'string', default: process.env.TINYBROKER_BROKER ?? '127.0.0.1:50051' },
      by: { type: 'string', default: 'call' }, // call, stream or batch
      'message-id': { type: 'string', default: '' }, // your own id of the message
      header: { type: 'string', multiple: true, default: [] }, // KEY=VALUE
    },
  });
  const [topic, ...payloads] = positionals;
  const headers = Object.fromEntries(values.header.map((header) => header.split(/=(.*)/s, 2)));
  const client = connect(values.broker);
  const requests = payloads.map((payload) => ({
    topic,
    payload: Buffer.from(payload),
    message_id: values['message-id'],
    headers,
  }));
  await PUBLISH[values.by](client, requests);
  client.close();
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
