// Places rows in a worker, so that the page stays alive; on the page itself, in pauses, where a browser has no worker for it.
const BREATH = 12; // milliseconds of work on the page between two pauses
const CANCELLED = "cancelled";
const engine = rowEngine();

function serveEngine(own) {
  const state = {};
  onmessage = ({ data }) => own.runJob(state, data, (share) => postMessage({ share })).then(
    (result) => postMessage({ result }), (problem) => postMessage({ problem: problem.message }));
  postMessage({ ready: true });
}

// The program with its constants, and the rows by which it is checked.
async function decodeProgram() {
  const { program, constants, tolerance } = about.model, decoded = {};
  for (const [name, type] of Object.entries(constants)) decoded[name] = await decodeArray(`model-${name}`, type);
  const [rows, expected] = [await decodeArray("model-rows", "float32"), await decodeArray("model-expected", "float32")];
  return { kind: "load", program, constants: decoded, rows: Float64Array.from(rows), expected, tolerance };
}

function startWorker() {
  return new Promise((done) => {
    try {
      const source = `"use strict";\nconst engine = (${rowEngine})();\n(${serveEngine})(engine);\n`;
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" })), worker = new Worker(url);
      worker.onmessage = () => { URL.revokeObjectURL(url); done(worker); };
      worker.onerror = (event) => { event.preventDefault(); done(null); };
    } catch {
      done(null); // a browser or a policy that has no workers
    }
  });
}

class Placer {
  started = null; // promise of ask(job, report)
  worker = null;
  reject = null; // ends the job at which the worker is
  isCancelled = false;

  start() {
    this.started = this.started || this.open();
    return this.started;
  }

  async open() {
    const [load, worker] = [await decodeProgram(), await startWorker()];
    this.worker = worker;
    document.documentElement.dataset.placer = worker ? "worker" : "page";
    const ask = worker ? (job, report) => askWorker(worker, job, report, this) : this.askPage();
    await ask(load, () => {});
    return ask;
  }

  askPage() {
    const state = {};
    let paused = performance.now();
    return (job, report) => engine.runJob(state, job, async (share) => {
      if (performance.now() - paused < BREATH) return;
      report(share);
      await new Promise((done) => setTimeout(done));
      paused = performance.now();
      if (this.isCancelled) throw new Error(CANCELLED);
    });
  }

  async place(job, report) {
    const ask = await this.start();
    if (this.isCancelled) throw new Error(CANCELLED);
    return ask(job, report);
  }

  cancel() {
    this.isCancelled = true;
    if (!this.worker || !this.reject) return; // not at work yet
    this.worker.terminate();
    this.started = this.worker = null;
    this.reject(new Error(CANCELLED));
  }
}

function askWorker(worker, job, report, placer) {
  return new Promise((resolve, reject) => {
    placer.reject = reject;
    worker.onerror = (event) => { event.preventDefault(); reject(new Error(event.message)); };
    worker.onmessage = ({ data }) => {
      if (data.share !== undefined) report(data.share);
      else {
        placer.reject = null;
        if (data.problem !== undefined) reject(new Error(data.problem));
        else resolve(data.result);
      }
    };
    worker.postMessage(job);
  });
}
