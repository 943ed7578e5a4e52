// From a text, or rows of numbers, to coordinates: read, matched and computed chunk by chunk, with a report after each.
const LISTED_PROBLEMS = 5;
const FEWEST_FOR_SPREAD = 20, LEAST_SPREAD = 0.2, MOST_SPREAD = 3; // as in src/dre/cli/transform.py
const FAR = 10; // times as far from the center as rows of the fit

// What is found while rows are placed: coordinates of those that have some, their records, and why others have none.
class Placed {
  coordinates = [];
  at = []; // where the record of each row begins
  lines = []; // and on which line
  refused = 0;
  problems = []; // the first of them
  squares = 0; // of the distances of all rows from the center of the fit
  far = []; // lines of rows that are far out

  refuse(line, reason) {
    this.refused++;
    if (this.problems.length < LISTED_PROBLEMS) this.problems.push({ line, reason });
  }

  keep(found, components, places, lines) {
    lines.forEach((line, r) => {
      const row = found.coordinates.subarray(r * components, (r + 1) * components);
      if (!row.every(Number.isFinite)) return this.refuse(line, "it lies too far from the rows of the fit: check its units");
      if (found.distances[r] > FAR) this.far.push(line);
      this.coordinates.push(...row);
      this.at.push(places[r]);
      this.lines.push(line);
    });
    for (const distance of found.distances) this.squares += distance * distance;
  }

  // As plain arrays, which pass between a worker and the page.
  result(read) {
    const spread = Math.sqrt(this.squares / Math.max(1, read));
    const isOdd = this.squares > 0 && read >= FEWEST_FOR_SPREAD && Number.isFinite(spread) && (spread < LEAST_SPREAD || spread > MOST_SPREAD);
    const notes = isOdd ? [`These rows spread ${Number(spread.toPrecision(2))} times as far as those of the fit: check their units.`] : [];
    const { refused, problems, far } = this;
    return { coordinates: Float64Array.from(this.coordinates), at: Float64Array.from(this.at), lines: Uint32Array.from(this.lines), refused, problems, notes, far };
  }
}

// Places the rows of a text.
async function placeText(program, spec, text, report) {
  const layout = findLayout(text, knownNames(spec)), { separator, at, line } = layout;
  const reader = rowReader(layout, [...firstOf(records(text, separator, at, line), SNIFFED_ROWS)], spec);
  const placed = new Placed(), { chunk, size, components } = program, rows = new Float64Array(chunk * size);
  let places = [], lines = [], read = 0;
  const flush = async (share) => {
    if (lines.length) placed.keep(program.run(rows, lines.length), components, places, lines);
    read += lines.length;
    [places, lines] = [[], []];
    await report(share);
  };
  for (const record of records(text, separator, at, line)) {
    const problem = reader.read(record.values, rows, lines.length * size);
    if (problem) placed.refuse(record.line, problem);
    else {
      places.push(record.at);
      lines.push(record.line);
    }
    if (lines.length === chunk) await flush(record.at / text.length);
  }
  await flush(1);
  const result = placed.result(read), { filled, unknown } = reader.counts;
  if (filled) result.notes.push(`Missing values of ${filled} row${filled > 1 ? "s" : ""} are filled in as in the fit.`);
  if (unknown) result.notes.push(`${unknown} value${unknown > 1 ? "s" : ""} of categories did not occur in the fit.`);
  return { ...result, layout: { ...layout, numbers: reader.numbers }, used: reader.fields.map(({ index }) => index) };
}

// Places rows of numbers, such as pixels.
async function placeNumbers(program, numbers, report) {
  const { chunk, size, components } = program, placed = new Placed(), count = numbers.length / size;
  for (let from = 0; from < count; from += chunk) {
    const ids = Array.from({ length: Math.min(chunk, count - from) }, (_, k) => from + k);
    placed.keep(program.run(numbers.subarray(from * size), ids.length), components, ids, ids);
    await report((from + ids.length) / count);
  }
  return { ...placed.result(count), layout: null };
}

// Compares the program with coordinates that Python has computed; throws if this browser computes others.
function checkProgram(program, { rows, expected, tolerance }) {
  const count = rows.length / program.size, found = [];
  for (let from = 0; from < count; from += program.chunk) {
    found.push(...program.run(rows.subarray(from * program.size), Math.min(program.chunk, count - from)).coordinates);
  }
  const worst = Math.max(...found.map((value, k) => Math.abs(value - expected[k]) / Math.max(1, Math.abs(expected[k]))));
  if (!(worst <= tolerance)) throw new Error(`this browser computes other coordinates than the model, by ${worst.toPrecision(2)}`);
}

// What a worker is asked for: to load the program, or to place rows with it.
async function runJob(state, job, report) {
  if (job.kind === "load") {
    state.program = loadProgram(job.program, job.constants);
    checkProgram(state.program, job);
    return null;
  }
  return job.kind === "text" ? placeText(state.program, job.spec, job.text, report) : placeNumbers(state.program, job.numbers, report);
}

return { runJob, decodeText, unifiedLines, readRecord, plainValue, rowOfImage };
