// Loaded before the language server: it reads schemas from files, and whoever connects to anything is named.
const net = require('node:net');

net.Socket.prototype.connect = function (...args) {
  process.stderr.write(`the server connects to ${JSON.stringify(args[0])}\n`);
  process.exit(1);
};
