// The payload of the page: coordinates, columns, names and image sheets, decoded on demand.
const $ = (id) => document.getElementById(id);
const about = JSON.parse($("about").textContent);
const n = about.n;
const ARRAY_TYPES = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, int32: Int32Array, float32: Float32Array, float64: Float64Array };
const rows = { columns: [], names: null };

async function decode(id) {
  const binary = atob($(id).textContent);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function decodeStrings(id) {
  return JSON.parse(new TextDecoder().decode(await decode(id)));
}

// Coordinates from 0 to 1 on both axes, y pointing up.
async function decodeCoordinates(stage) {
  const steps = new Uint16Array(await decode(`coordinates-${stage}`));
  const x = new Float32Array(n), y = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    x[i] = steps[i] / 65535;
    y[i] = steps[n + i] / 65535;
  }
  return { x, y };
}

async function decodeColumn(column, i) {
  const values = new ARRAY_TYPES[column.type](await decode(`column-${i}`));
  return { ...column, values, names: column.scale ? null : await decodeStrings(`classes-${i}`) };
}

function nameOf(i) {
  return rows.names ? rows.names[i] : `row ${i}`;
}

function valueOf(column, i, digits = 4) {
  const value = column.values[i];
  if (!column.scale) return column.names[value];
  if (!Number.isFinite(value)) return "–";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits)));
}

// Image sheets, decoded when first shown.
const sheets = new Map();

// A blob URL is short; a data URI would be repeated in every element that shows a part of the sheet.
function blobUrl(dataUri) {
  const binary = atob(dataUri.slice(dataUri.indexOf(",") + 1));
  return URL.createObjectURL(new Blob([Uint8Array.from(binary, (each) => each.charCodeAt(0))], { type: "image/webp" }));
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
