#!/usr/bin/env node
// Starts the program of the platform package. Where Node.js can, the program replaces this process, so that Node.js uses no memory while the server runs.
"use strict";

const { spawn } = require("node:child_process");
const { dirname, join } = require("node:path");
const { version } = require("../package.json");

// Signals that ask a server to stop or to reload its configuration.
const FORWARDED_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

function candidates() {
  const platform = `${process.platform}-${process.arch}`;
  // npm installs one of the two, by the C library of the system.
  return process.platform === "linux" ? [platform, `${platform}-musl`] : [platform];
}

function findProgram() {
  const file = process.platform === "win32" ? "tidegate.exe" : "tidegate";
  for (const platform of candidates()) {
    try {
      return join(dirname(require.resolve(`@tidegate/${platform}/package.json`)), "bin", file);
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  const missing = candidates().map((platform) => `@tidegate/${platform}@${version}`).join(" or ");
  console.error(
    `tidegate: the package ${missing} is not installed. npm installs it unless optional dependencies are switched off ` +
      "(--omit=optional), or there is none for this system.",
  );
  process.exit(1);
}

function replaceProcess(program, args) {
  // Node.js warns that the function is experimental; a client would show that as an error of the server.
  process.removeAllListeners("warning");
  process.execve(program, [program, ...args], process.env);
}

function runChild(program, args) {
  const child = spawn(program, args, { stdio: "inherit" });
  for (const signal of FORWARDED_SIGNALS) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`tidegate: cannot start ${program}: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    // Ends with the same signal, so that the caller receives the same status.
    for (const name of FORWARDED_SIGNALS) process.removeAllListeners(name);
    process.kill(process.pid, signal);
  });
}

const program = findProgram();
const args = process.argv.slice(2);
if (typeof process.execve === "function" && process.platform !== "win32") replaceProcess(program, args);
else runChild(program, args);
