// Which part of the map is seen: the place in the middle, and pixels of a unit.
const view = { x: 0.5, y: 0.5, scale: 500, home: 500, width: 1, height: 1, ratio: 1 };

// From places to pixels of the screen, and back.
const across = (x) => (x - view.x) * view.scale + view.width / 2;
const down = (y) => (view.y - y) * view.scale + view.height / 2;
const placeAcross = (px) => (px - view.width / 2) / view.scale + view.x;
const placeDown = (py) => view.y - (py - view.height / 2) / view.scale;

function zoom(times, px = view.width / 2, py = view.height / 2) {
  const x = placeAcross(px), y = placeDown(py);
  view.scale = Math.min(view.home * 500, Math.max(view.home / 4, view.scale * times));
  view.x = x - (px - view.width / 2) / view.scale;
  view.y = y + (py - view.height / 2) / view.scale;
  redraw();
}

// All but the outermost of the given rows, or of all.
function frame(x, y, some = null) {
  const ends = (values) => {
    const count = some ? some.length : n, stride = Math.max(1, Math.floor(count / 20000)), sample = [];
    for (let j = 0; j < count; j += stride) sample.push(values[some ? some[j] : j]);
    sample.sort((a, b) => a - b);
    const beyond = sample.length > 200 ? Math.floor(sample.length / 1000) : 0;
    return [sample[beyond], sample[sample.length - 1 - beyond]];
  };
  const [left, right] = ends(x), [low, high] = ends(y);
  view.x = (left + right) / 2;
  view.y = (low + high) / 2;
  const wide = Math.max(right - left, 1e-4), tall = Math.max(high - low, 1e-4);
  view.scale = Math.min(view.width / wide, view.height / tall) * 0.9;
  if (!some) view.home = view.scale;
  view.scale = Math.min(view.scale, view.home * 200);
}
