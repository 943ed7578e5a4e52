// The two canvases: points, written straight into pixels, which is fast for hundreds of thousands; and an overlay of class names,
// images, the lasso and a ring around the hovered point.
const canvas = $("points"), context = canvas.getContext("2d", { alpha: false });
const overlay = $("overlay"), ink = overlay.getContext("2d");
const MAX_NAMES = 40; // classes with names on the map
const MAX_IMAGES = 150; // visible points that are drawn as images
let frame = null, pixels = null;
const colors = new Uint32Array(n); // of the points, 0xBBGGRR
let highlighted = null; // 1 for each highlighted point; null if none is
let dimmedColor = 0, background = 0;
let lasso = null, hovered = -1;

// Drawing in random order keeps one class from hiding the others.
const shuffled = (() => {
  const ids = Uint32Array.from({ length: n }, (_, i) => i);
  let seed = 12345;
  for (let i = n - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = seed % (i + 1), swapped = ids[i];
    ids[i] = ids[j];
    ids[j] = swapped;
  }
  return ids;
})();
let drawOrder = shuffled;

function cssColor(color) {
  return `rgb(${color & 255} ${(color >> 8) & 255} ${(color >> 16) & 255})`;
}

function cssVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function resize() {
  const box = canvas.parentElement.getBoundingClientRect();
  view.ratio = Math.min(2, window.devicePixelRatio || 1);
  view.width = box.width;
  view.height = box.height;
  for (const each of [canvas, overlay]) {
    each.width = Math.max(1, Math.round(box.width * view.ratio));
    each.height = Math.max(1, Math.round(box.height * view.ratio));
  }
  frame = context.createImageData(canvas.width, canvas.height);
  pixels = new Uint32Array(frame.data.buffer);
  redraw();
}

// Many points are small; points grow when zooming in.
function pointRadius() {
  const usual = Math.min(4.5, Math.max(1.1, 90 / Math.sqrt(n)));
  return Math.min(9, usual * Math.pow(Math.max(1, view.scale / view.home), 0.35)) * view.ratio;
}

// The pixels of an antialiased disc: [dx, dy, coverage from 0 to 1].
function disc(radius) {
  const reach = Math.ceil(radius), found = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const coverage = Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(dx, dy)));
      if (coverage > 0.05) found.push([dx, dy, coverage]);
    }
  }
  return found;
}

// Blends the discs of all points, or of those with this highlight (0 or 1), into the pixels; returns how many are visible.
function drawDiscs(highlight, radius, opacity) {
  const { width, height } = canvas, shape = disc(radius), count = shape.length;
  const offsets = Int32Array.from(shape, ([dx, dy]) => dy * width + dx);
  const alphas = Int32Array.from(shape, ([, , coverage]) => Math.round(256 * coverage * opacity));
  const scale = view.scale * view.ratio, x0 = width / 2 - view.x * scale, y0 = height / 2 + view.y * scale, reach = Math.ceil(radius) + 1;
  const { x, y } = now;
  let visible = 0;
  for (let k = 0; k < n; k++) {
    const i = drawOrder[k];
    if (highlight !== null && highlighted[i] !== highlight) continue;
    const px = (x[i] * scale + x0 + 0.5) | 0, py = (y0 - y[i] * scale + 0.5) | 0;
    if (px < reach || py < reach || px >= width - reach || py >= height - reach) continue;
    visible++;
    const center = py * width + px, color = highlight === 0 ? dimmedColor : colors[i];
    const redBlue = color & 0xff00ff, green = color & 0x00ff00;
    for (let j = 0; j < count; j++) {
      const at = center + offsets[j], alpha = alphas[j], under = pixels[at], rest = 256 - alpha;
      const rb = ((Math.imul(under & 0xff00ff, rest) + Math.imul(redBlue, alpha)) >>> 8) & 0xff00ff;
      const g = ((Math.imul(under & 0x00ff00, rest) + Math.imul(green, alpha)) >>> 8) & 0x00ff00;
      pixels[at] = 0xff000000 | rb | g;
    }
  }
  return visible;
}

function drawPoints() {
  pixels.fill(background);
  const radius = pointRadius();
  let visible;
  if (highlighted) {
    drawDiscs(0, radius, 0.5);
    visible = drawDiscs(1, Math.max(radius, 1.6 * view.ratio), 1);
  } else {
    visible = drawDiscs(null, radius, n > 20000 ? 0.75 : 0.9);
  }
  context.putImageData(frame, 0, 0);
  return visible;
}

// At most once per frame, however often something changes.
let requested = false, visiblePoints = 0;
function redraw() {
  if (requested || !now.x) return;
  requested = true;
  requestAnimationFrame(() => {
    requested = false;
    visiblePoints = drawPoints();
    drawOverlay();
    canvas.dataset.frames = Number(canvas.dataset.frames || 0) + 1; // for scripts that wait for a frame
  });
}

function drawOverlay() {
  ink.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  ink.clearRect(0, 0, view.width, view.height);
  if (about.thumbnails && visiblePoints <= MAX_IMAGES) drawImages();
  if ($("show-names").checked && colorColumn && !colorColumn.scale) drawClassNames();
  if (hovered >= 0) drawRing();
  if (lasso) drawLasso();
}

function isOnScreen(px, py, margin) {
  return px > -margin && py > -margin && px < view.width + margin && py < view.height + margin;
}

// The fewer points are visible, the larger their images.
function drawImages() {
  const { width, height } = about.thumbnails;
  const tall = Math.max(28, Math.min(96, 320 / Math.sqrt(Math.max(1, visiblePoints)))), wide = (tall * width) / height;
  ink.imageSmoothingEnabled = height >= tall;
  for (let i = 0; i < n; i++) {
    if (highlighted && !highlighted[i]) continue;
    const px = toScreenX(now.x[i]), py = toScreenY(now.y[i]);
    if (!isOnScreen(px, py, tall)) continue;
    const sheet = sheetOf(i, redraw);
    if (!sheet || !sheet.complete) continue;
    const [sx, sy] = sheetCorner(i);
    ink.drawImage(sheet, sx, sy, width, height, px - wide / 2, py - tall / 2, wide, tall);
    ink.strokeStyle = cssColor(colors[i]);
    ink.lineWidth = 2;
    ink.strokeRect(px - wide / 2, py - tall / 2, wide, tall);
  }
}

// The coordinates of up to 500 points of each class, and how many points were seen of it.
function sampleClasses() {
  const { names, values } = colorColumn;
  const samples = names.map(() => ({ x: [], y: [], count: 0 })), stride = Math.max(1, Math.floor(n / 20000));
  for (let i = 0; i < n; i += stride) {
    if (highlighted && !highlighted[i]) continue;
    const sample = samples[values[i]];
    sample.count++;
    if (sample.x.length < 500) {
      sample.x.push(now.x[i]);
      sample.y.push(now.y[i]);
    }
  }
  return samples;
}

// Each name at the median of its class; where two would overlap, only the larger class is named.
function drawClassNames() {
  const { names } = colorColumn;
  if (names.length > MAX_NAMES) return;
  const samples = sampleClasses(), drawn = [];
  const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  ink.font = "600 14px system-ui, 'DejaVu Sans', sans-serif";
  ink.textAlign = "center";
  ink.textBaseline = "middle";
  ink.lineJoin = "round";
  ink.lineWidth = 4;
  ink.strokeStyle = cssColor(background);
  ink.fillStyle = cssVariable("--ink");
  const largestFirst = samples.map((_, code) => code).sort((a, b) => samples[b].count - samples[a].count);
  for (const code of largestFirst) {
    if (!samples[code].x.length) continue;
    const px = toScreenX(median(samples[code].x)), py = toScreenY(median(samples[code].y));
    const text = names[code].length > 28 ? `${names[code].slice(0, 27)}…` : names[code];
    const half = ink.measureText(text).width / 2 + 4;
    if (!isOnScreen(px, py, 0) || drawn.some((other) => Math.abs(other.px - px) < other.half + half && Math.abs(other.py - py) < 18)) continue;
    drawn.push({ px, py, half });
    ink.strokeText(text, px, py);
    ink.fillText(text, px, py);
  }
}

function drawRing() {
  ink.beginPath();
  ink.arc(toScreenX(now.x[hovered]), toScreenY(now.y[hovered]), pointRadius() / view.ratio + 4, 0, 2 * Math.PI);
  ink.lineWidth = 2;
  ink.strokeStyle = cssVariable("--ink");
  ink.stroke();
}

function drawLasso() {
  const accent = cssVariable("--accent");
  ink.beginPath();
  lasso.forEach(([px, py], k) => (k ? ink.lineTo(px, py) : ink.moveTo(px, py)));
  ink.closePath();
  ink.globalAlpha = 0.12;
  ink.fillStyle = accent;
  ink.fill();
  ink.globalAlpha = 1;
  ink.lineWidth = 1.5;
  ink.setLineDash([5, 4]);
  ink.strokeStyle = accent;
  ink.stroke();
  ink.setLineDash([]);
}
