// The points: discs written straight into the pixels of a picture, which is quick for hundreds of thousands of them.
const canvas = $("points"), context = canvas.getContext("2d", { alpha: false });
let picture = null, pixels = null;
const now = { x: null, y: null }; // places as they are drawn
const tint = new Uint32Array(n); // 0xBBGGRR
let lit = null; // which points stand out, where some do
// An order without order: no class hides the others.
const shuffled = (() => {
  const numbers = Uint32Array.from({ length: n }, (_, i) => i);
  let seed = 12345;
  for (let i = n - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = seed % (i + 1), held = numbers[i];
    numbers[i] = numbers[j];
    numbers[j] = held;
  }
  return numbers;
})();
let order = shuffled;

function resize() {
  const box = canvas.parentElement.getBoundingClientRect();
  view.ratio = Math.min(2, window.devicePixelRatio || 1);
  view.width = box.width;
  view.height = box.height;
  for (const each of [canvas, over]) {
    each.width = Math.max(1, Math.round(box.width * view.ratio));
    each.height = Math.max(1, Math.round(box.height * view.ratio));
  }
  picture = context.createImageData(canvas.width, canvas.height);
  pixels = new Uint32Array(picture.data.buffer);
  redraw();
}

// Small where there are many, larger as one comes closer.
function radius() {
  const usual = Math.min(4.5, Math.max(1.1, 90 / Math.sqrt(n)));
  return Math.min(9, usual * Math.pow(Math.max(1, view.scale / view.home), 0.35)) * view.ratio;
}

// How much each pixel of a disc covers, as steps from its middle: [offset across, offset down, 0…256].
function disc(r) {
  const reach = Math.ceil(r), found = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const covers = Math.min(1, Math.max(0, r + 0.5 - Math.hypot(dx, dy)));
      if (covers > 0.05) found.push([dx, dy, covers]);
    }
  }
  return found;
}

function stamp(which, r, opacity) {
  const { width, height } = canvas, shape = disc(r), count = shape.length;
  const steps = Int32Array.from(shape, ([dx, dy]) => dy * width + dx);
  const covers = Int32Array.from(shape, ([, , share]) => Math.round(256 * share * opacity));
  const scale = view.scale * view.ratio, x0 = width / 2 - view.x * scale, y0 = height / 2 + view.y * scale, reach = Math.ceil(r) + 1;
  const { x, y } = now;
  let drawn = 0;
  for (let at = 0; at < n; at++) {
    const i = order[at];
    if (which !== null && lit[i] !== which) continue;
    const px = (x[i] * scale + x0 + 0.5) | 0, py = (y0 - y[i] * scale + 0.5) | 0;
    if (px < reach || py < reach || px >= width - reach || py >= height - reach) continue;
    drawn++;
    const centre = py * width + px, colour = which === 0 ? faint : tint[i];
    const redBlue = colour & 0xff00ff, green = colour & 0x00ff00;
    for (let j = 0; j < count; j++) {
      const place = centre + steps[j], share = covers[j], under = pixels[place], rest = 256 - share;
      const rb = ((Math.imul(under & 0xff00ff, rest) + Math.imul(redBlue, share)) >>> 8) & 0xff00ff;
      const g = ((Math.imul(under & 0x00ff00, rest) + Math.imul(green, share)) >>> 8) & 0x00ff00;
      pixels[place] = 0xff000000 | rb | g;
    }
  }
  return drawn;
}

let faint = 0, ground = 0;

function paint() {
  pixels.fill(ground);
  const r = radius(), opacity = n > 20000 ? 0.75 : 0.9;
  let drawn;
  if (lit) {
    stamp(0, r, 0.5);
    drawn = stamp(1, Math.max(r, 1.6 * view.ratio), 1);
  } else {
    drawn = stamp(null, r, opacity);
  }
  context.putImageData(picture, 0, 0);
  return drawn;
}

// Once a frame at most, however often something changes.
let asked = false, drawnLast = 0;
function redraw() {
  if (asked || !now.x) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    drawnLast = paint();
    paintOver(drawnLast);
    canvas.dataset.frames = Number(canvas.dataset.frames || 0) + 1; // how often it was drawn
  });
}
