// The payload of the page: coordinates, columns, names and image sheets, decoded on demand.
const $ = (id) => document.getElementById(id);
const about = JSON.parse($("about").textContent);
const n = about.n;
const ARRAY_TYPES = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, int32: Int32Array, float32: Float32Array, float64: Float64Array };
const rows = { columns: [], names: null, numbers: null };

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function decode(id) {
  const stream = new Blob([bytesOfBase64($(id).textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function decodeStrings(id) {
  return JSON.parse(new TextDecoder().decode(await decode(id)));
}

// The page holds the first bytes of all values, then the second bytes, and so on, which compresses better.
async function decodeArray(id, type) {
  const planes = new Uint8Array(await decode(id)), size = ARRAY_TYPES[type].BYTES_PER_ELEMENT, count = planes.length / size;
  if (size === 1) return new ARRAY_TYPES[type](planes.buffer);
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < size; plane++) {
    const start = plane * count;
    for (let i = 0, at = plane; i < count; i++, at += size) bytes[at] = planes[start + i];
  }
  return new ARRAY_TYPES[type](bytes.buffer);
}

// Σ factor · coordinate + shift, in double precision: a map may lie far from the origin.
function placed([x, y, z], [a, b, c], shift) {
  const values = new Float32Array(n);
  if (z) for (let i = 0; i < n; i++) values[i] = x[i] * a + y[i] * b + z[i] * c + shift;
  else for (let i = 0; i < n; i++) values[i] = x[i] * a + y[i] * b + shift;
  return values;
}

// Coordinates of a stage of a map: x, y (and z) as they are shown, from 0 to 1 with y pointing up, and the original ones.
async function decodeCoordinates(map, stage) {
  const { components, stages } = about.maps[map], { matrix, offset } = stages[stage].place;
  const all = await decodeArray(`coordinates-${map}-${stage}`, "float32");
  const original = Array.from({ length: components }, (_, axis) => all.subarray(axis * n, (axis + 1) * n));
  const shown = original.map((_, axis) => placed(original, matrix.map((factors) => factors[axis]), offset[axis]));
  const named = ([x, y, z = null]) => ({ x, y, z });
  return { ...named(shown), original: named(original) };
}

const NO_INTEGER = -(2 ** 31); // a missing value among numbers that are stored as integers

function fromIntegers(integers, decimals) {
  const values = new Float64Array(n), divisor = 10 ** decimals;
  for (let i = 0; i < n; i++) values[i] = integers[i] === NO_INTEGER ? NaN : integers[i] / divisor;
  return values;
}

// Codes of classes and texts with their names, numbers, or dates in milliseconds since 1970.
async function decodeColumn(column, i) {
  const stored = await decodeArray(`column-${i}`, column.type);
  if (column.kind === "class" || column.kind === "text") return { ...column, values: stored, names: await decodeStrings(`classes-${i}`) };
  const isInteger = column.kind === "number" && column.decimals !== null;
  return { ...column, values: isInteger ? fromIntegers(stored, column.decimals) : stored, names: null, type: isInteger ? "float64" : column.type };
}

// The nearest rows of each row in the data, nearest first: those of row i from i · k on. Null if the page holds none.
async function decodeNeighbors() {
  if (!about.neighbors) return null;
  const { k, type } = about.neighbors;
  return { k, ids: Uint32Array.from(await decodeArray("neighbors", type)) };
}

// The value of the column that heads a card; null if there is none, or if it is not decoded yet.
function headlineOf(i) {
  const column = about.card.title === null ? null : rows.columns[about.card.title];
  return column && column.values && !(column.missing && column.values[i] === column.names.length - 1) ? column.names[column.values[i]] : null;
}

// The position of a row in its file, of which some rows may not be here.
const rowNumber = (i) => (rows.numbers ? rows.numbers[i] : i);

function nameOf(i) {
  return rows.names ? rows.names[i] : headlineOf(i) ?? `row ${rowNumber(i)}`;
}

// A title, if the rows have titles, else their name.
function titleOf(i) {
  return headlineOf(i) ?? nameOf(i);
}

// A date as in ISO 8601.
function dateText(milliseconds, precision) {
  const text = new Date(milliseconds).toISOString();
  return precision === "day" ? text.slice(0, 10) : text.slice(0, 19).replace("T", " ");
}

// The fewest digits from which a number can be read back exactly; a float32 needs fewer than a float64.
function exactText(value, isFloat32) {
  if (!isFloat32) return String(value);
  let digits = 6;
  while (digits < 9 && Math.fround(Number(value.toPrecision(digits))) !== value) digits++;
  return String(Number(value.toPrecision(digits)));
}

function valueOf(column, i, digits = 4) {
  const value = column.values[i];
  if (column.names) return column.names[value];
  if (!Number.isFinite(value)) return "–";
  if (column.kind === "date") return dateText(value, column.precision);
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits)));
}

// Image sheets, decoded when first shown.
const sheets = new Map();

// A blob URL is short; a data URI would be repeated in every element that shows a part of the sheet.
function blobUrl(dataUri) {
  return URL.createObjectURL(new Blob([bytesOfBase64(dataUri.slice(dataUri.indexOf(",") + 1))], { type: "image/webp" }));
}

function sheetOf(i, onLoad) {
  const { perSide, sheets: count } = about.thumbnails;
  const number = Math.floor(i / (perSide * perSide));
  if (number >= count) return null;
  if (!sheets.has(number)) {
    const image = new Image();
    image.src = blobUrl($(`sheet-${number}`).textContent);
    sheets.set(number, image);
  }
  const image = sheets.get(number);
  if (!image.complete && onLoad) image.addEventListener("load", onLoad, { once: true });
  return image;
}

// The top left corner of a row's image on its sheet.
function sheetCorner(i) {
  const { perSide, width, height } = about.thumbnails;
  const within = i % (perSide * perSide);
  return [(within % perSide) * width, Math.floor(within / perSide) * height];
}

// An element that shows the image of a row, this many pixels tall.
function imageElement(i, tall) {
  const { width, height, perSide } = about.thumbnails;
  const scale = tall / height, [x, y] = sheetCorner(i), sheet = sheetOf(i);
  const element = document.createElement("div");
  element.className = "image";
  element.style.width = `${width * scale}px`;
  element.style.height = `${tall}px`;
  element.style.backgroundImage = `url("${sheet.src}")`;
  element.style.backgroundSize = `${width * perSide * scale}px auto`;
  element.style.backgroundPosition = `${-x * scale}px ${-y * scale}px`;
  return element;
}
