// The client of a broker, from the .proto files.
'use strict';

const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const PROTO = process.env.TINYBROKER_PROTO ?? path.join(__dirname, '..', '..', 'proto');

const CHANNEL_OPTIONS = {
  // A stream may rightly be silent for hours: only pings tell a quiet broker from a dead one.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 10_000,
  // The channel waits between its own tries to connect, by default up to two minutes.
  'grpc.initial_reconnect_backoff_ms': 200,
  'grpc.max_reconnect_backoff_ms': 2_000,
};

function connect(address) {
  const definition = protoLoader.loadSync('tinybroker/v1/service.proto', {
    includeDirs: [PROTO],
    keepCase: true,
    // An epoch, the largest number here, is exact up to 2^53: microseconds until the year 2255.
    longs: Number,
    enums: String,
    defaults: true,
    // `event.event` then names the kind of an event.
    oneofs: true,
  });
  const { Broker } = grpc.loadPackageDefinition(definition).tinybroker.v1;
  return new Broker(address, grpc.credentials.createInsecure(), CHANNEL_OPTIONS);
}

// A deadline on every call: without one a call may wait for ever.
const deadline = () => Date.now() + 10_000;

// A unary call as a promise.
function call(client, method, request) {
  return new Promise((resolve, reject) => {
    const answered = (error, answer) => (error ? reject(error) : resolve(answer));
    client[method](request, { deadline: deadline() }, answered);
  });
}

module.exports = { connect, call, deadline };
