// One map on the screen: its canvases, its current coordinates, and the visible part as a center and a scale in pixels.
const MAX_ZOOM = 500, MIN_ZOOM = 0.25; // relative to the view of the whole map
const MAX_SORTED = 100000; // points that are sorted by depth in every frame

function boxAround(x, y) {
  let left = Infinity, right = -Infinity, bottom = Infinity, top = -Infinity;
  for (let i = 0; i < n; i++) {
    if (x[i] < left) left = x[i];
    if (x[i] > right) right = x[i];
    if (y[i] < bottom) bottom = y[i];
    if (y[i] > top) top = y[i];
  }
  return { left, right, bottom, top };
}

class MapView {
  constructor(element, source = 0) {
    this.element = element;
    this.canvas = element.querySelector(".points");
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.overlay = element.querySelector(".overlay");
    this.ink = this.overlay.getContext("2d");
    this.source = source; // index into about.maps
    this.view = { x: 0.5, y: 0.5, scale: 500, home: 500, isHome: true, width: 1, height: 1, ratio: 1 };
    this.coordinates = null; // as decoded, of the nearest stage
    this.placed = null; // coordinates at this moment, between two stages perhaps
    this.rotation = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]; // of three components
    this.now = { x: null, y: null }; // on the plane of the screen
    this.version = 0; // counts changes of `now`
    this.byDepth = null; // ids from far to near, of three components
    this.box = { left: 0, right: 1, bottom: 0, top: 1 }; // around all points
    this.visible = 0; // points on the screen
    this.lasso = null; // corners in pixels while it is drawn
    this.grid = null; // see buildGrid
  }

  // From coordinates to pixels of this map's canvas, and back.
  toScreenX(x) { return (x - this.view.x) * this.view.scale + this.view.width / 2; }
  toScreenY(y) { return (this.view.y - y) * this.view.scale + this.view.height / 2; }
  toMapX(px) { return (px - this.view.width / 2) / this.view.scale + this.view.x; }
  toMapY(py) { return this.view.y - (py - this.view.height / 2) / this.view.scale; }
  toScreen(i) { return [this.toScreenX(this.now.x[i]), this.toScreenY(this.now.y[i])]; }

  // Pixels from the corner of the area that holds all maps and the card.
  toPage(i) { return this.toArea(this.toScreen(i)); }
  toArea([px, py]) { return [px + this.element.offsetLeft, py + this.element.offsetTop]; }

  locate(event) {
    const box = this.element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  isOnScreen(px, py, margin = 0) {
    return px > -margin && py > -margin && px < this.view.width + margin && py < this.view.height + margin;
  }

  // Call after points have moved: with coordinates { x, y, z } that may be those of a stage or lie between two.
  place(placed = this.placed) {
    this.placed = placed;
    if (placed.z) {
      this.turned = this.turned || { x: new Float32Array(n), y: new Float32Array(n), depth: new Float32Array(n) };
      project(placed, this.rotation, this.turned);
      this.isDepthOld = true;
    } else {
      this.byDepth = null;
    }
    const { x, y } = placed.z ? this.turned : placed;
    this.now.x = x;
    this.now.y = y;
    this.grid = null;
    this.version++;
    this.box = boxAround(x, y);
    redrawMoving();
  }

  get isThreeDimensional() { return Boolean(this.placed && this.placed.z); }

  // Sorting takes longer than drawing, so many points keep their old order while they turn.
  sortByDepth() {
    if (!this.isDepthOld || (isMoving && this.byDepth && n > MAX_SORTED)) return;
    this.byDepth = farToNear(this.turned.depth);
    this.isDepthOld = false;
  }

  // Whether it pays to leave out points off screen: many points, of which many are, and which are not on the move.
  isCullable() {
    return n > WORTH_CULLING && this.view.scale > 2 * this.view.home && this.version === this.drawnVersion;
  }

  // The center of the screen stays on the map, so that panning can't lose it.
  clamp() {
    const { view } = this, box = layers.reduce((wide, layer) => layer.widen(this, wide), this.box);
    view.x = Math.max(box.left, Math.min(box.right, view.x));
    view.y = Math.max(box.bottom, Math.min(box.top, view.y));
  }

  panBy(dx, dy) {
    this.view.x -= dx / this.view.scale;
    this.view.y += dy / this.view.scale;
    this.view.isHome = false;
    this.moved();
  }

  // Zoom by a factor; the map under (px, py) stays in place.
  zoom(factor, px = this.view.width / 2, py = this.view.height / 2) {
    const { view } = this, x = this.toMapX(px), y = this.toMapY(py);
    view.scale = Math.min(view.home * MAX_ZOOM, Math.max(view.home * MIN_ZOOM, view.scale * factor));
    view.x = x - (px - view.width / 2) / view.scale;
    view.y = y + (py - view.height / 2) / view.scale;
    view.isHome = false;
    this.moved();
  }

  moved() {
    this.clamp();
    redrawMoving();
    stateChanged();
  }

  // Show the given rows, or all; of many rows, a few outliers may stay outside.
  fitView(ids = null) {
    const { view } = this, fit = this.fitted(ids);
    if (!ids) view.home = fit.scale;
    view.x = fit.x;
    view.y = fit.y;
    view.scale = Math.min(fit.scale, view.home * 200);
    view.isHome = !ids;
    redraw();
    stateChanged();
  }

  fitted(ids) {
    const range = (values) => {
      const count = ids ? ids.length : n, stride = Math.max(1, Math.floor(count / 20000)), sample = [];
      for (let j = 0; j < count; j += stride) sample.push(values[ids ? ids[j] : j]);
      sample.sort((a, b) => a - b);
      const outliers = sample.length > 200 ? Math.floor(sample.length / 1000) : 0;
      return [sample[outliers], sample[sample.length - 1 - outliers]];
    };
    const [left, right] = range(this.now.x), [bottom, top] = range(this.now.y), covered = ids ? 0 : this.coveredTop();
    const width = Math.max(right - left, 1e-4), height = Math.max(top - bottom, 1e-4);
    const scale = Math.min(this.view.width / width, (this.view.height - covered) / height) * 0.92;
    return { x: (left + right) / 2, y: (bottom + top) / 2 + covered / 2 / scale, scale };
  }

  // Pixels at the top that lie below the toolbar.
  coveredTop() {
    const below = $("tools").getBoundingClientRect().bottom - this.element.getBoundingClientRect().top;
    return Math.max(0, Math.min(below, 0.2 * this.view.height));
  }

  // Fits the canvases to the element; the center and the relative zoom stay. Returns whether the size has changed.
  resize() {
    const { view, canvas } = this, { width, height } = this.element.getBoundingClientRect();
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (view.width === width && view.height === height && view.ratio === ratio) return false;
    Object.assign(view, { width: Math.max(1, width), height: Math.max(1, height), ratio });
    for (const each of [canvas, this.overlay]) {
      each.width = Math.max(1, Math.round(width * ratio));
      each.height = Math.max(1, Math.round(height * ratio));
    }
    if (!this.now.x) return false;
    const zoomed = view.scale / view.home;
    if (view.isHome) {
      this.fitView();
    } else {
      view.home = this.fitted(null).scale;
      view.scale = view.home * zoomed;
    }
    return true;
  }

  nearestPoint(px, py, reach) { return nearestPoint(this, px, py, reach); }
}
