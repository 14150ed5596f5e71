// Pictures that zoom and are dragged, and graphs whose blocks fold.
(function () {
  var FOLDED_FROM = 80; // boxes of a graph that begins folded

  function zoom(picture, factor) {
    var svg = picture.querySelector('svg'), box = svg.viewBox.baseVal;
    var old = picture.zoom || 1, now = Math.min(8, Math.max(0.05, factor === 0 ? picture.clientWidth / box.width : old * factor));
    var x = (picture.scrollLeft + picture.clientWidth / 2) / old, y = (picture.scrollTop + picture.clientHeight / 2) / old;
    picture.zoom = now;
    svg.setAttribute('width', box.width * now);
    svg.setAttribute('height', box.height * now);
    picture.scrollLeft = x * now - picture.clientWidth / 2;
    picture.scrollTop = y * now - picture.clientHeight / 2;
  }

  // what stands below a folded block moves up
  function layOut(picture) {
    var svg = picture.querySelector('svg'), moved = 0;
    svg.querySelectorAll('.piece').forEach(function (piece) {
      piece.setAttribute('transform', 'translate(0,' + -moved + ')');
      if (piece.classList.contains('is-folded')) moved += +piece.dataset.saves;
    });
    svg.viewBox.baseVal.height = +svg.dataset.height - moved;
    zoom(picture, 1);
  }
  function fold(picture, pieces, folded) {
    pieces.forEach(function (piece) { piece.classList.toggle('is-folded', folded); });
    layOut(picture);
  }

  function addTool(tools, words, tip, act) {
    var button = document.createElement('button');
    button.textContent = words;
    button.title = tip;
    button.addEventListener('click', act);
    tools.appendChild(button);
  }
  function drag(picture) {
    var from = null;
    picture.classList.add('grab');
    picture.addEventListener('pointerdown', function (event) {
      if (event.pointerType === 'mouse' && event.button === 0)
        from = [event.clientX + picture.scrollLeft, event.clientY + picture.scrollTop];
    });
    addEventListener('pointermove', function (event) {
      if (!from) return;
      picture.scrollLeft = from[0] - event.clientX;
      picture.scrollTop = from[1] - event.clientY;
    });
    addEventListener('pointerup', function () { from = null; });
    picture.addEventListener('wheel', function (event) {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(picture, event.deltaY < 0 ? 1.2 : 1 / 1.2);
    }, { passive: false });
  }

  document.querySelectorAll('.picture').forEach(function (picture) {
    var tools = document.createElement('div'), blocks = picture.querySelectorAll('.piece.block');
    tools.className = 'tools';
    picture.before(tools);
    addTool(tools, '\u2212', 'smaller (or Ctrl and the wheel)', function () { zoom(picture, 1 / 1.4); });
    addTool(tools, '+', 'larger (or Ctrl and the wheel)', function () { zoom(picture, 1.4); });
    addTool(tools, 'whole width', 'as wide as the page', function () { zoom(picture, 0); });
    if (blocks.length) {
      addTool(tools, 'fold', 'every block becomes one box', function () { fold(picture, blocks, true); });
      addTool(tools, 'unfold', 'every layer is shown', function () { fold(picture, blocks, false); });
    }
    blocks.forEach(function (block) {
      block.querySelectorAll('.handle,.folded').forEach(function (part) {
        part.addEventListener('click', function () { fold(picture, [block], !block.classList.contains('is-folded')); });
      });
    });
    drag(picture);
    if (picture.querySelectorAll('.node').length > FOLDED_FROM) fold(picture, blocks, true);
  });
})();
