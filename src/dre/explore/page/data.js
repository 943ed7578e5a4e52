// What the page carries: places, columns, names and images, unpacked as they are needed.
const $ = (id) => document.getElementById(id);
const about = JSON.parse($("about").textContent);
const n = about.n;
const KINDS = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, int32: Int32Array, float32: Float32Array, float64: Float64Array };

async function unpacked(id) {
  const coded = atob($(id).textContent);
  const bytes = new Uint8Array(coded.length);
  for (let i = 0; i < coded.length; i++) bytes[i] = coded.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function unpackedTexts(id) {
  return JSON.parse(new TextDecoder().decode(await unpacked(id)));
}

// Places from 0 to 1 in either direction, y upwards.
async function unpackedPlaces(stage) {
  const steps = new Uint16Array(await unpacked(`places-${stage}`));
  const x = new Float32Array(n), y = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    x[i] = steps[i] / 65535;
    y[i] = steps[n + i] / 65535;
  }
  return { x, y };
}

async function unpackedColumn(column, i) {
  const values = new KINDS[column.type](await unpacked(`column-${i}`));
  return { ...column, values, names: column.scale ? null : await unpackedTexts(`classes-${i}`) };
}

const rows = { columns: [], names: null };

function nameOf(i) {
  return rows.names ? rows.names[i] : `row ${i}`;
}

function valueOf(column, i, digits = 4) {
  const value = column.values[i];
  if (!column.scale) return column.names[value];
  if (!Number.isFinite(value)) return "–";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits)));
}

// The sheet that holds an image, as a picture that is decoded when it is first asked for.
const sheets = new Map();

// Short, where the picture itself would be repeated by every element that shows a part of it.
function addressOf(carried) {
  const coded = atob(carried.slice(carried.indexOf(",") + 1));
  return URL.createObjectURL(new Blob([Uint8Array.from(coded, (each) => each.charCodeAt(0))], { type: "image/webp" }));
}

function sheetOf(i, whenThere) {
  const { across, sheets: count } = about.thumbnails;
  const number = Math.floor(i / (across * across));
  if (number >= count) return null;
  if (!sheets.has(number)) {
    const picture = new Image();
    picture.src = addressOf($(`sheet-${number}`).textContent);
    sheets.set(number, picture);
  }
  const picture = sheets.get(number);
  if (!picture.complete && whenThere) picture.addEventListener("load", whenThere, { once: true });
  return picture;
}

function cornerOf(i) {
  const { across, width, height } = about.thumbnails;
  const within = i % (across * across);
  return [(within % across) * width, Math.floor(within / across) * height];
}

// An element that shows the image of a row, so many pixels high.
function imageOf(i, tall) {
  const { width, height, across } = about.thumbnails;
  const times = tall / height, [x, y] = cornerOf(i), picture = sheetOf(i);
  const element = document.createElement("div");
  element.className = "image";
  element.style.width = `${width * times}px`;
  element.style.height = `${tall}px`;
  element.style.backgroundImage = `url("${picture.src}")`;
  element.style.backgroundSize = `${width * across * times}px auto`;
  element.style.backgroundPosition = `${-x * times}px ${-y * times}px`;
  return element;
}
