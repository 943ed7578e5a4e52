// How new rows come to the page: dropped, chosen or pasted. Nothing leaves the browser.
const placer = new Placer();
const LISTED_REASONS = 12;
const IMAGE_NAME = /\.(png|jpe?g|bmp|gif|webp|avif)$/i;
let isPlacing = false;

const isImageFile = (file) => file.type.startsWith("image/") || IMAGE_NAME.test(file.name);

function say(text, problems = []) {
  const listed = problems.slice(0, LISTED_REASONS), more = problems.length - listed.length;
  if (more) listed.push(`and ${grouped(more)} more`);
  $("new-status").textContent = text;
  $("new-problems").replaceChildren(...listed.map((problem) => make("li", {}, problem)));
}

// Of what could not be placed: on a phone the panel lies below the map.
function sayRefused(text, problems) {
  say(text, problems);
  $("new-status").scrollIntoView({ block: "nearest" });
}

function showProgress(share) {
  $("new-running").hidden = share === null;
  if (share !== null) $("new-progress").value = share;
}

// Places rows and shows them; what could not be placed is listed with its line.
async function placeAndShow(batch, job, notes = []) {
  const from = newRows.count;
  const placed = await placer.place(job, showProgress), { refused, problems } = placed, count = placed.lines.length;
  const named = (line) => (batch.names ? batch.names[line] : `line ${line}`);
  const reasons = problems.map(({ line, reason }) => `${named(line)}: ${reason}`);
  if (refused > problems.length) reasons.push(`and ${grouped(refused - problems.length)} more`);
  if (!count) return { text: `No row of ${batch.inside || batch.name} could be placed:`, problems: reasons, isRefused: true };
  addNewRows({ ...batch, layout: placed.layout, used: placed.used }, placed);
  showNewRows();
  const beyond = includeNewRows(from);
  const all = [`${batch.counted(count)} placed.`, ...placed.notes, ...notes];
  if (placed.far.length) all.push(`${plural(placed.far.length, "row")} differ${placed.far.length > 1 ? "" : "s"} from those of the fit by more than 10 times their spread, first ${named(placed.far[0])}: ${placed.far.length > 1 ? "their places mean" : "its place means"} little.`);
  if (beyond) all.push(`${plural(beyond, "row")} lie${beyond > 1 ? "" : "s"} far outside of the map: Zoom shows all.`);
  if (refused) all.push(`${plural(refused, "row")} could not be placed:`);
  if (!maps.some(showsNewRows)) all.push("The last stage shows them.");
  return { text: all.join(" "), problems: reasons, isRefused: refused > 0, isPlaced: true };
}

// What a job says: { text, problems, isRefused, isPlaced }; an error names the file.
async function outcome({ name, place }) {
  try {
    return await place();
  } catch (problem) {
    const isCancelled = problem.message === CANCELLED;
    return { text: isCancelled ? "Cancelled." : `${name} could not be placed: ${problem.message}.`, problems: [], isRefused: !isCancelled, isCancelled };
  }
}

// Places one after the other, and says of all what became of them; returns whether rows were placed.
async function placeAll(jobs) {
  if (isPlacing) {
    say("Rows are being placed: wait, or cancel that first.");
    return false;
  }
  isPlacing = true;
  placer.isCancelled = false;
  say("Placing rows …");
  showProgress(0);
  const outcomes = [];
  for (const job of jobs) {
    outcomes.push(await outcome(job));
    if (outcomes.at(-1).isCancelled) break;
  }
  const text = outcomes.map((each) => each.text).join("\n"), ofSeveral = outcomes.filter((each) => each.problems.length).length > 1;
  const problems = outcomes.flatMap((each, k) => each.problems.map((problem) => (ofSeveral && jobs[k].isTable ? `${jobs[k].name}, ${problem}` : problem)));
  (outcomes.some((each) => each.isRefused) ? sayRefused : say)(text, problems);
  announce(text);
  isPlacing = false;
  showProgress(null);
  $("new-rows").dataset.brought = Number($("new-rows").dataset.brought || 0) + 1; // for scripts that wait
  return outcomes.some((each) => each.isPlaced);
}

const placeTable = (batch, text) => placeAndShow({ ...batch, text }, { kind: "text", spec: about.model, text });
const fileBatch = (name) => ({ name, title: name, counted: (count) => `${plural(count, "row")} of ${name}` });
const PASTED = { name: "The pasted text", inside: "the pasted text", title: "pasted", counted: (count) => plural(count, "pasted row") };

async function readBytes(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes[0] !== 31 || bytes[1] !== 139) return bytes;
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

// Rows of the images that the browser can decode, and why it can't decode the others.
async function readImages(files, spec) {
  const read = [], problems = [];
  for (const [k, file] of files.entries()) {
    try {
      const pixels = await readPixels(file);
      read.push({ file, size: `${pixels.width} × ${pixels.height}`, ...engine.rowOfImage(pixels, spec) });
    } catch (problem) {
      if (files.length === 1) throw problem;
      problems.push(`${file.name}: ${problem.message}`);
    }
    if (placer.isCancelled) throw new Error(CANCELLED);
    showProgress(k / files.length / 2);
    if (k % 16 === 15) await new Promise((done) => setTimeout(done));
  }
  return { read, problems };
}

async function placeImages(files) {
  const spec = about.model.image;
  if (!spec) throw new Error("this page places rows of numbers, not images: bring a table");
  const { read, problems } = await readImages(files, spec);
  if (!read.length) return { text: `None of ${plural(files.length, "image")} could be placed:`, problems, isRefused: true };
  const numbers = new Float64Array(read.length * about.model.width), resized = read.filter((each) => each.isResized);
  read.forEach(({ row }, k) => numbers.set(row, k * row.length));
  const sizes = new Set(resized.map(({ size }) => size)), from = sizes.size === 1 ? ` from ${[...sizes][0]}` : "";
  const notes = resized.length ? [`${plural(resized.length, "image")} cropped in the middle and resized${from} to ${spec.width} × ${spec.height} pixels.`] : [];
  if (problems.length) notes.push(`${plural(problems.length, "image")} could not be placed:`);
  const names = read.map(({ file }) => file.name), [only] = names;
  const batch = { name: files.length > 1 ? plural(files.length, "image") : only, counted: (count) => (names.length > 1 ? plural(count, "image") : only), names, images: read.map(({ shown }) => shown) };
  const placed = await placeAndShow(batch, { kind: "numbers", numbers }, notes);
  return { ...placed, problems: [...problems, ...placed.problems], isRefused: placed.isRefused || problems.length > 0 };
}

// On a page of images, a file whose name is not that of one is read as a table; an error says so.
async function placeTableFile(file) {
  try {
    return await placeTable(fileBatch(file.name), engine.decodeText(await readBytes(file)));
  } catch (problem) {
    if (!about.model.image || problem.message === CANCELLED) throw problem;
    throw new Error(`it has no name of an image, such as .png or .jpg, and as a table ${problem.message}`);
  }
}

async function bringFiles(list) {
  const files = [...list], images = files.filter(isImageFile), tables = files.filter((file) => !isImageFile(file));
  const jobs = tables.map((file) => ({ name: file.name, isTable: true, place: () => placeTableFile(file) }));
  if (images.length) jobs.unshift({ name: images.length > 1 ? plural(images.length, "image") : images[0].name, place: () => placeImages(images) });
  if (jobs.length) await placeAll(jobs);
}

async function bringText(text) {
  if (text.trim()) return placeAll([{ name: PASTED.name, place: () => placeTable(PASTED, engine.unifiedLines(text)) }]);
  if (!isPlacing) sayRefused("There are no rows in it: bring a file, or copy rows of a table.", []);
  return false;
}

// From a drop or the clipboard: files if there are some, else text.
function bringTransfer(transfer) {
  if (transfer.files.length) bringFiles(transfer.files);
  else bringText(transfer.getData("text/plain"));
}

const holdsRows = ({ types }) => types.includes("Files") || types.includes("text/plain");

// A field takes text itself; a file that is dropped on it would replace the page.
const keepsText = (target, { files }) => !files.length && (target instanceof HTMLTextAreaElement || target instanceof HTMLInputElement);

function listenToDrops() {
  const sheet = make("div", { id: "new-drop", hidden: true }, make("p", {}, about.model.image ? "Drop images or a table to place them on the map" : "Drop a table to place its rows on the map"));
  $("map").append(sheet);
  document.addEventListener("dragover", (event) => {
    if (!holdsRows(event.dataTransfer)) return;
    event.preventDefault();
    sheet.hidden = false;
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) sheet.hidden = true; });
  document.addEventListener("drop", (event) => {
    sheet.hidden = true;
    if (!holdsRows(event.dataTransfer) || keepsText(event.target, event.dataTransfer)) return;
    event.preventDefault();
    bringTransfer(event.dataTransfer);
  });
}

function listenToPaste() {
  const field = $("new-text");
  const placeTyped = async () => { if (await bringText(field.value)) field.value = ""; }; // what is refused can be mended
  document.addEventListener("paste", (event) => {
    if (keepsText(event.target, event.clipboardData)) return;
    event.preventDefault();
    bringTransfer(event.clipboardData);
  });
  $("new-paste").addEventListener("click", () => {
    const isOpen = $("new-pasting").hidden;
    $("new-pasting").hidden = !isOpen;
    $("new-paste").setAttribute("aria-expanded", String(isOpen));
    if (isOpen) field.focus();
  });
  $("new-place").addEventListener("click", placeTyped);
  field.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) placeTyped(); });
}

// What the model reads, in words.
function describeModel() {
  const { names: columns, width, image, table } = about.model, names = table && table.named ? table.columns.map(({ name }) => name) : columns;
  if (image && !names) return `The model reads images of ${image.width} × ${image.height} pixels${image.channels === 1 ? ", in gray" : ""}; or rows of ${grouped(width)} values.`;
  if (!names) return `The model reads rows of ${grouped(width)} values.`;
  const listed = names.slice(0, 8).join(", ");
  return `The model reads the column${names.length > 1 ? "s" : ""} ${listed}${names.length > 8 ? ` and ${grouped(names.length - 8)} more` : ""}.`;
}

function listenToNewRows() {
  const kinds = `a CSV file${about.model.image ? " or images" : ""}`, isTouched = matchMedia("(pointer: coarse)").matches;
  $("new-hint").textContent = isTouched ? `Choose ${kinds}, or paste rows of a spreadsheet.` : `Drop ${kinds} onto the map, or paste rows of a spreadsheet.`;
  $("new-about").textContent = describeModel();
  $("new-files").addEventListener("click", () => $("new-input").click());
  $("new-input").addEventListener("change", async (event) => {
    const files = [...event.target.files];
    event.target.value = ""; // the same file can be chosen again
    await bringFiles(files);
  });
  $("new-cancel").addEventListener("click", () => placer.cancel());
  $("new-zoom").addEventListener("click", zoomToNewRows);
  $("new-save").addEventListener("click", saveNewRows);
  $("new-clear").addEventListener("click", () => {
    clearNewRows();
    showNewRows();
    say("");
    announce("New rows cleared");
  });
  listenToDrops();
  listenToPaste();
  stageWatchers.push(() => { showNewStage(); if (newPinned >= 0 && !showsNewRows(newPinnedMap)) pinNewRow(-1); });
  Object.assign(window.explorer, {
    newRows: () => ({ count: newRows.count, original: newRows.original.map((each) => Array.from(each)), lines: Array.from(newRows.line) }),
    newScreen: (k, map = 0) => maps[map].toArea(newSpot(maps[map], k)),
    newPinned: () => newPinned,
    imageSpec: about.model.image,
    readPixels,
    engine,
  });
}
