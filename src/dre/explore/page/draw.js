// Draws a map: its points or their density, then what lies over them. WebGL2 draws the points where it can.
let renderer = createPoints();

// The fragment #render=canvas asks for the canvas, #render=webgl2 for WebGL2 even if it is emulated.
function createPoints() {
  const asked = new URLSearchParams(location.hash.slice(1)).get("render");
  if (asked === "canvas") return new CanvasPoints();
  const gl = openWebgl(asked === "webgl2");
  return gl ? new WebglPoints(gl) : new CanvasPoints();
}

// Whichever one is in use, each map shows the same picture.
function useRenderer(other) {
  renderer = other;
  budget = Infinity;
  redraw();
}

function drawMap(map, level) {
  const drawn = drawPoints(map, level);
  drawOverlay(map);
  return drawn;
}

// Draws 1 / 2^level of the points; returns how many that are.
function drawPoints(map, level, painter = renderer) {
  if (map.isThreeDimensional) map.sortByDepth();
  const base = baseOrder(map), list = orderOf(map, level);
  map.look = pointLook(map);
  map.tints = map.isThreeDimensional ? shade(map) : colors;
  map.visible = countVisible(map, base);
  if (densityOn()) drawDensity(map, list);
  else painter.draw(map, list, map.look, base.ids.length ? Math.max(list.ids.length, 1) / base.ids.length : 1);
  map.drawnVersion = map.version;
  map.canvas.dataset.renderer = renderer.name;
  return list.ids.length;
}

// How many points are on the screen, of the highlighted ones if there are some. Of many, a sample is counted.
function countVisible(map, { ids, split }) {
  const { view, now: { x, y } } = map, stride = Math.max(1, Math.floor((ids.length - split) / 20000));
  const halfWidth = view.width / 2 / view.scale, halfHeight = view.height / 2 / view.scale;
  let count = 0;
  for (let k = split; k < ids.length; k += stride) {
    if (Math.abs(x[ids[k]] - view.x) <= halfWidth && Math.abs(y[ids[k]] - view.y) <= halfHeight) count++;
  }
  return count * stride;
}
