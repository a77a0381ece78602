// Facts about NEXUS3 and MCP programs that others wrote. Prints a line for each, and fails at the first that
// does not hold. Called by .ci/interop with our binary and the folder where the others are installed.
import { spawn, execFile } from "node:child_process";
import { existsSync, mkdtempSync, mkdirSync, readFileSync, readdirSync, writeFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createServer } from "node:net";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [nexus3, home] = process.argv.slice(2);
const run = promisify(execFile);
const top = realpathSync(mkdtempSync(join(tmpdir(), "nexus3-interop-")));
const nexusHome = join(top, "home");
const files = join(top, "files");
const everything = join(home, "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
const filesystem = join(home, "npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
const children = [];
// For everything together, and for one command.
const WHOLE_MAX = 600000;
const COMMAND_MAX = 90000;
let facts = 0;

function cleanUp() {
  for (const child of children) child.kill("SIGKILL");
  rmSync(top, { recursive: true, force: true });
}

function giveUp(why) {
  console.error(`FAILED  ${why}`);
  cleanUp();
  process.exit(1);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => giveUp(`ended by ${signal}`));
setTimeout(() => giveUp(`not done within ${WHOLE_MAX} ms`), WHOLE_MAX).unref();

function holds(fact, is, detail) {
  if (!is) throw new Error(`${fact}\n${JSON.stringify(detail, null, 1)?.slice(0, 4000)}`);
  facts += 1;
  console.log(`ok  ${fact}`);
}

function start(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  children.push(child);
  child.said = "";
  for (const pipe of [child.stdout, child.stderr]) pipe.on("data", (piece) => { child.said += piece; });
  return child;
}

async function until(what, within, check) {
  const end = Date.now() + within;
  let last;
  while (Date.now() < end) {
    try {
      last = await check();
      if (last) return last;
    } catch (error) {
      last = String(error);
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`not within ${within} ms: ${what}`);
}

// Everything that a process has started, as [pid, command line].
function descendants(pid) {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      const parent = Number(readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1).split(" ")[1]);
      return [{ pid: Number(name), parent, line: readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ") }];
    } catch {
      return [];
    }
  });
  const below = (parent) => all.filter((one) => one.parent === parent).flatMap((one) => [[one.pid, one.line], ...below(one.pid)]);
  return below(pid);
}

// The processes that know our folder.
function ours() {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid).flatMap((name) => {
    try {
      const line = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ");
      return line.includes(top) ? [[Number(name), line]] : [];
    } catch {
      return [];
    }
  });
}

function ask(url) {
  return fetch(url, { signal: AbortSignal.timeout(5000) });
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// A value that fits a schema, for arguments that must be given.
function sample(schema, name) {
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.type === "number" || schema.type === "integer") return Math.max(schema.minimum ?? 1, 1);
  if (schema.type === "boolean") return true;
  if (schema.type === "array") return [];
  if (schema.type === "object") return arguments_(schema);
  return name.includes("path") ? join(files, "a.txt") : "apple";
}

function arguments_(schema) {
  const given = {};
  for (const name of schema.required ?? []) given[name] = sample(schema.properties?.[name] ?? {}, name);
  return given;
}

async function rpc(port, method, params = {}, agent) {
  const args = ["rpc", "call", method, JSON.stringify(params), "--port", String(port), "--home", nexusHome];
  const { stdout } = await run(nexus3, agent ? [...args, "--agent", agent] : args, { timeout: COMMAND_MAX, killSignal: "SIGKILL" });
  return JSON.parse(stdout);
}

// What a tool gave, by the last result in the conversation. The demo model calls what it is told to.
async function call(port, agent, tool, args) {
  await rpc(port, "send", { content: `call ${tool} ${JSON.stringify(args)}`, timeout: 60 }, agent);
  const { total } = await rpc(port, "get_messages", { limit: 1 }, agent);
  const { messages } = await rpc(port, "get_messages", { offset: Math.max(0, total - 3) }, agent);
  return messages.filter((message) => message.role === "tool").at(-1);
}

async function listedByOthers(command, args) {
  const client = new Client({ name: "interop", version: "1" });
  await client.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
  const { tools } = await client.listTools();
  await client.close();
  return tools;
}

async function outsideServers() {
  const [port, httpPort] = [await freePort(), await freePort()];
  start(process.execPath, [everything, "streamableHttp"], { env: { ...process.env, PORT: String(httpPort) } });
  await until("the everything server listens", 20000, async () => (await ask(`http://127.0.0.1:${httpPort}/mcp`)).status);
  const servers = {
    everything: { command: process.execPath, args: [everything, "stdio"], env: { SECRET_OF_OURS: "canary-value-7" } },
    web: { url: `http://127.0.0.1:${httpPort}/mcp` },
    files: { command: process.execPath, args: [filesystem, files] },
    time: { command: join(home, "venv/bin/mcp-server-time"), args: ["--local-timezone", "UTC"] },
  };
  writeFileSync(join(nexusHome, "mcp.json"), JSON.stringify({ mcpServers: servers }), { mode: 0o600 });
  const server = start(nexus3, ["serve", String(port), "--home", nexusHome, "--allow-yolo"], { cwd: files });
  await until("our server listens", 20000, async () => (await ask(`http://127.0.0.1:${port}/healthz`)).ok);
  const connected = await until("all servers are connected", 60000, async () => {
    const { servers } = await rpc(port, "mcp_list_servers");
    return servers.every((server) => server.status === "connected") && servers;
  }).catch(async (error) => { throw new Error(`${error.message}: ${JSON.stringify(await rpc(port, "mcp_list_servers"))}`); });
  holds("servers from npm and PyPI are connected, over stdio and HTTP", connected.length === 4, connected);
  return { port, server, connected };
}

async function everyTool(port, connected) {
  await rpc(port, "create_agent", { agent_id: "scout", preset: "yolo", cwd: files });
  const theirs = await listedByOthers(process.execPath, [everything, "stdio"]);
  for (const name of ["everything", "web"]) {
    const ours = connected.find((server) => server.name === name).tools;
    const missing = theirs.filter((tool) => !ours.includes(`mcp__${name}__${tool.name}`));
    // What a server offers only to clients that can be asked is not offered to us.
    holds(`every tool of the everything server is listed (${name})`, missing.length === 0, { missing, ours });
    for (const tool of theirs) {
      const result = await call(port, "scout", `mcp__${name}__${tool.name}`, arguments_(tool.inputSchema));
      // What is said of a server that was not asked, or did not answer, begins like this.
      const isOurs = /^(Unknown tool|The MCP server|Invalid arguments)/.test(result?.content ?? "Unknown tool");
      holds(`${name}: ${tool.name} is called`, !isOurs, result);
    }
  }
  const echo = await call(port, "scout", "mcp__everything__echo", { message: "hello there" });
  holds("echo gives back what it was given", echo.content.includes("hello there"), echo);
  const env = theirs.find((tool) => /env/i.test(tool.name));
  const shown = await call(port, "scout", `mcp__everything__${env.name}`, {});
  holds("no secret of mcp.json is shown", !shown.content.includes("canary-value-7") && shown.content.includes("SECRET_OF_OURS"), shown);
  const read = await call(port, "scout", "mcp__files__read_text_file", { path: join(files, "a.txt") });
  holds("a file is read through the filesystem server", read.content.includes("three apples"), read);
  const time = await call(port, "scout", "mcp__time__get_current_time", { timezone: "UTC" });
  holds("the server from PyPI tells the time", /\d{4}-\d\d-\d\dT/.test(time.content), time);
}

async function killed(port, server) {
  const programs = descendants(server.pid).filter(([, line]) => line.includes(`${everything} stdio`));
  holds("the everything server runs below ours", programs.length === 1, programs);
  process.kill(programs[0][0], "SIGKILL");
  const other = await call(port, "scout", "mcp__time__get_current_time", { timezone: "UTC" });
  holds("a server that is killed does not touch another", !other.meta?.error, other);
  await until("the killed server is back", 30000, async () => (await rpc(port, "mcp_status", { name: "everything" })).status === "connected");
  const echo = await call(port, "scout", "mcp__everything__echo", { message: "again" });
  holds("a server that was killed is started again", echo.content.includes("again"), echo);
}

async function hostOfOthers(port) {
  const client = new Client({ name: "interop", version: "1" });
  const args = ["mcp", "--port", String(port), "--home", nexusHome];
  await client.connect(new StdioClientTransport({ command: nexus3, args, env: { ...process.env } }));
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name).sort().join(" ");
  holds("nexus3 mcp offers its tools", names === "cancel create destroy list send status", names);
  const does = async (name, args, options) => (await client.callTool({ name, arguments: args }, undefined, options)).structuredContent;
  const created = await does("create", { agent_id: "guest" });
  holds("a client of others creates an agent", created.agent_id === "guest", created);
  const news = [];
  const sent = await does("send", { agent_id: "guest", content: 'call echo {"message":"hi"}' }, { onprogress: (one) => news.push(one) });
  holds("it sends a message and reads the answer", typeof sent.content === "string" && sent.finish_reason === "stop", sent);
  holds("it hears how far the agent is", news.length > 0, news);
  const status = await does("status", { agent_id: "guest" });
  holds("it asks how the agent is", status.agent_id === "guest" && status.status === "idle", status);
  const listed = await does("list", {});
  holds("it lists the agents", listed.agents.some((agent) => agent.agent_id === "guest"), listed);
  const cancelled = await does("cancel", { agent_id: "guest" });
  holds("it cancels what runs", Array.isArray(cancelled.request_ids), cancelled);
  const abort = new AbortController();
  const long = does("send", { agent_id: "guest", content: 'call sleep {"seconds":600}' }, { signal: abort.signal }).catch((error) => error);
  await until("the agent sleeps", 20000, async () => (await does("status", { agent_id: "guest" })).status === "running");
  abort.abort("enough");
  await long;
  await until("the agent is idle", 20000, async () => (await does("status", { agent_id: "guest" })).status === "idle");
  holds("a call that it calls off ends the turn", true);
  const destroyed = await does("destroy", { agent_id: "guest" });
  holds("it destroys the agent", destroyed.success === true, destroyed);
  const wrong = await client.callTool({ name: "send", arguments: { agent_id: "guest", content: "x" } });
  holds("it is told what is wrong", wrong.isError === true, wrong);
  await client.close();
}

async function stopped(port, server) {
  const ended = new Promise((resolve) => server.on("exit", resolve));
  const programs = descendants(server.pid);
  await rpc(port, "shutdown_server");
  await Promise.race([ended, new Promise((_, reject) => setTimeout(() => reject(new Error("our server does not stop")), 30000).unref())]);
  const left = programs.filter(([pid]) => existsSync(`/proc/${pid}`));
  holds("nothing is left of the servers that we started", programs.length >= 3 && left.length === 0, { programs, left });
  await until("nothing that knows our folder runs", 10000, () => ours().length === 0).catch((error) => {
    throw new Error(`${error.message}: ${JSON.stringify(ours())}`);
  });
  holds("nothing runs that knows our folder", true);
}

try {
  mkdirSync(nexusHome, { mode: 0o700 });
  mkdirSync(files);
  writeFileSync(join(files, "a.txt"), "three apples\n");
  const { port, server, connected } = await outsideServers();
  await everyTool(port, connected);
  await killed(port, server);
  await hostOfOthers(port);
  await stopped(port, server);
  console.log(`${facts} passed, 0 failed`);
} catch (error) {
  console.error(`FAILED  ${error.message}`);
  console.log(`${facts} passed, 1 failed`);
  process.exitCode = 1;
} finally {
  cleanUp();
}
