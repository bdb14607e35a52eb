// Publishes payloads to a topic, each after the last was confirmed.
//
//     node publisher.js jobs.thumb.1 a.png b.png --header tenant=acme
//
// Prints what the broker answered, one JSON object a line.
'use strict';

const { parseArgs } = require('node:util');
const { connect, call } = require('./broker');

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      broker: { type: 'string', default: process.env.TINYBROKER_BROKER ?? '127.0.0.1:50051' },
      'message-id': { type: 'string', default: '' }, // your own id of the message
      header: { type: 'string', multiple: true, default: [] }, // KEY=VALUE
    },
  });
  const [topic, ...payloads] = positionals;
  const headers = Object.fromEntries(values.header.map((header) => header.split(/=(.*)/s, 2)));
  const client = connect(values.broker);
  for (const payload of payloads) {
    const request = { topic, payload: Buffer.from(payload), message_id: values['message-id'], headers };
    const { system_id, message_id, subscriptions } = await call(client, 'Publish', request);
    // subscriptions is 0 where nobody was listening: then the message is gone.
    console.log(JSON.stringify({ system_id, message_id, subscriptions }));
  }
  client.close();
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
