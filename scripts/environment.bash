# Shared by the scripts of this folder, to be sourced: where things are, and how to enter the environment.
# shellcheck shell=bash

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$checkout/.venv
stamps=$venv/stamps                      # one file per finished step of scripts/setup
interfaces=$venv/interfaces              # colcon's build, install and log folders of rbd_interfaces

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# Variables that point into some other Python or ROS environment and would be obeyed in ours.
# The last one tells the ROS wheels that LD_LIBRARY_PATH is already right, which holds for one venv only.
forget_other_environments() {
    unset PYTHONPATH PYTHONHOME VIRTUAL_ENV AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH \
        LD_LIBRARY_PATH RMW_IMPLEMENTATION ROS_DISTRO ROS_VERSION ROS_PYTHON_VERSION \
        _ROS_WHEELS_BOOTSTRAP_COMPLETE
}

recorded() {    # recorded KEY: what scripts/setup wrote down about the environment that it made
    [[ ! -r $stamps/environment ]] || sed -n "s/^$1=//p" "$stamps/environment"
}

# True if the user sourced a ROS 2 installation that works with the python3 on the PATH.
# Python wheels of ROS, ours or another checkout's, do not count.
ros_is_sourced() {
    [[ -n ${ROS_DISTRO:-} ]] && python3 - 2>/dev/null <<'PYTHON'
import importlib.util, sys
if importlib.util.find_spec("ros_wheels_bootstrapper"):
    sys.exit(1)
import rclpy
PYTHON
}

prepend() {    # prepend VARIABLE FOLDER: as in a PATH, without a trailing colon
    export "$1=$2${!1:+:${!1}}"
}

# Enters what scripts/setup made. The variables are those that colcon's setup.bash would set; sourcing
# it takes several Python starts.
enter_environment() {
    [[ -r $stamps/environment ]] || fail "there is no environment yet: run scripts/setup first."
    local ros distro python_folder
    ros=$(recorded ros)
    if [[ $ros == wheels ]]; then
        forget_other_environments
        distro=$(recorded distro)
        export ROS_DISTRO=${distro:-jazzy} ROS_VERSION=2 ROS_PYTHON_VERSION=3
    elif [[ ${ROS_DISTRO:-} != "$ros" ]]; then
        fail "the environment was made for ROS 2 $ros: source its setup.bash, or run scripts/setup again."
    fi
    python_folder=$(echo "$venv"/lib/python3.*)
    python_folder=${python_folder##*/}
    export VIRTUAL_ENV=$venv
    unset PYTHONHOME
    # Containers often forbid bytecode beside the sources, and every process then parses a thousand modules, for a second.
    if [[ -n ${PYTHONDONTWRITEBYTECODE:-} ]]; then
        unset PYTHONDONTWRITEBYTECODE
        export PYTHONPYCACHEPREFIX=$venv/bytecode
    fi
    prepend PATH "$venv/bin"
    prepend AMENT_PREFIX_PATH "$venv"
    prepend CMAKE_PREFIX_PATH "$venv"
    if [[ -d $interfaces/install ]]; then
        prepend AMENT_PREFIX_PATH "$interfaces/install"
        prepend CMAKE_PREFIX_PATH "$interfaces/install"
        prepend LD_LIBRARY_PATH "$interfaces/install/lib"
        prepend PYTHONPATH "$interfaces/install/lib/$python_folder/site-packages"
    fi
    # No traffic off this machine, no cross-talk with other checkouts.
    export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST
    if [[ -z ${ROS_DOMAIN_ID:-} ]]; then
        local checksum
        checksum=$(cksum <<<"$checkout")
        export ROS_DOMAIN_ID=$((${checksum%% *} % 101 + 1))
    fi
}
