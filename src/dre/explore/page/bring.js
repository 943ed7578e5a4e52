// How new rows come to the page: dropped, chosen or pasted. Nothing leaves the browser.
const placer = new Placer();
const IMAGE_NAME = /\.(png|jpe?g|bmp|gif|webp|avif)$/i;
let isPlacing = false;

const isImageFile = (file) => file.type.startsWith("image/") || IMAGE_NAME.test(file.name);

function say(text, problems = []) {
  $("new-status").textContent = text;
  $("new-problems").replaceChildren(...problems.map((problem) => make("li", {}, problem)));
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
  if (!count) {
    const [first, ...others] = reasons;
    return { text: `No row of ${batch.name} could be placed. ${first || ""}`, problems: others };
  }
  addNewRows({ ...batch, layout: placed.layout, used: placed.used }, placed);
  showNewRows();
  const beyond = includeNewRows(from);
  const all = [`${batch.counted(count)} placed.`, ...placed.notes, ...notes];
  if (placed.far.length) all.push(`${plural(placed.far.length, "row")} differ${placed.far.length > 1 ? "" : "s"} from those of the fit by more than 10 times their spread, first ${named(placed.far[0])}: ${placed.far.length > 1 ? "their places mean" : "its place means"} little.`);
  if (beyond) all.push(`${plural(beyond, "row")} lie${beyond > 1 ? "" : "s"} far outside of the map: Zoom shows all.`);
  if (refused) all.push(`${plural(refused, "row")} could not be placed:`);
  if (!maps.some(showsNewRows)) all.push("The last stage shows them.");
  return { text: all.join(" "), problems: reasons };
}

// One after the other; an error names the file.
async function whilePlacing(name, action) {
  if (isPlacing) return say("Rows are being placed: wait, or cancel that first.");
  isPlacing = true;
  placer.isCancelled = false;
  say("Placing rows …");
  showProgress(0);
  try {
    const { text, problems } = await action();
    say(text, problems);
    announce(text);
  } catch (problem) {
    const text = problem.message === CANCELLED ? "Cancelled." : `${name} could not be placed: ${problem.message}.`;
    say(text);
    announce(text);
  } finally {
    isPlacing = false;
    showProgress(null);
    $("new-rows").dataset.brought = Number($("new-rows").dataset.brought || 0) + 1; // for scripts that wait
  }
}

const placeTable = (batch, text) => placeAndShow({ ...batch, text }, { kind: "text", spec: about.model, text });
const fileBatch = (name) => ({ name, title: name, counted: (count) => `${plural(count, "row")} of ${name}` });
const PASTED = { name: "The pasted text", title: "pasted", counted: (count) => plural(count, "pasted row") };

async function readBytes(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes[0] !== 31 || bytes[1] !== 139) return bytes;
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

async function placeImages(files) {
  const spec = about.model.image, name = files.length > 1 ? plural(files.length, "image") : files[0].name;
  if (!spec) throw new Error("this page places rows of numbers, not images: bring a table");
  const numbers = new Float64Array(files.length * about.model.width), images = [], sizes = new Set();
  let resized = 0;
  for (const [k, file] of files.entries()) {
    const pixels = await readPixels(file).catch((problem) => { throw new Error(files.length > 1 ? `${file.name}: ${problem.message}` : problem.message); });
    const { row, shown, isResized } = engine.rowOfImage(pixels, spec);
    numbers.set(row, k * row.length);
    images.push(shown);
    resized += isResized ? 1 : 0;
    sizes.add(`${pixels.width} × ${pixels.height}`);
    showProgress(k / files.length / 2);
    if (k % 16 === 15) await new Promise((done) => setTimeout(done));
  }
  const from = sizes.size === 1 ? ` from ${[...sizes][0]}` : "";
  const notes = resized ? [`${plural(resized, "image")} cropped in the middle and resized${from} to ${spec.width} × ${spec.height} pixels.`] : [];
  return placeAndShow({ name, counted: (count) => (files.length > 1 ? plural(count, "image") : name), names: files.map((file) => file.name), images }, { kind: "numbers", numbers }, notes);
}

async function bringFiles(list) {
  const files = [...list], images = files.filter(isImageFile), tables = files.filter((file) => !isImageFile(file));
  if (images.length) await whilePlacing(images.length > 1 ? plural(images.length, "image") : images[0].name, () => placeImages(images));
  for (const file of tables) await whilePlacing(file.name, async () => placeTable(fileBatch(file.name), engine.decodeText(await readBytes(file))));
}

function bringText(text) {
  if (text.trim()) return whilePlacing(PASTED.name, () => placeTable(PASTED, engine.unifiedLines(text)));
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
  const placeTyped = () => { bringText(field.value); field.value = ""; };
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
  $("new-hint").textContent = `Drop a CSV file${about.model.image ? " or images" : ""} onto the map, or paste rows of a spreadsheet.`;
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
